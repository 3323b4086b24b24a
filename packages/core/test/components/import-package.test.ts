import { execFile } from "node:child_process";
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { programArguments } from "@fenced/test-support/program-arguments";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { importPackage } from "../../src/components/import-package.ts";
import { packageOf, resolvePackage } from "../../src/components/resolve-package.ts";
import { ComponentError } from "../../src/index.ts";

const run = promisify(execFile);
const words = programArguments(new URL("../../src/index.ts", import.meta.url));
const [flags, core] = [words.slice(0, -1), words.slice(-1).map((file) => pathToFileURL(file).href)[0]];
const component = "export class Made { static fromConfig(config) { return { from: import.meta.url, ...config }; } }\n";
let root: string;

async function write(path: string, content: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), content);
}

async function install(application: string, name: string, manifest: object, code: string = component): Promise<void> {
  const folder = `${application}/node_modules/${name}`;
  await write(`${folder}/package.json`, JSON.stringify({ name, version: "1.0.0", type: "module", ...manifest }));
  await write(`${folder}/index.js`, code);
}

/** Loads a component in a separate program, and returns its output. */
async function loadInProgram(
  main: string,
  cwd: string,
  provider: string,
  allow: string[] = [],
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  const model = { provider, componentType: "thing", version: 1, config: { a: 1 } };
  await write(
    main,
    `import { loadComponent } from ${JSON.stringify(core)};
    const loading = loadComponent(${JSON.stringify(model)}, ${JSON.stringify({ allow })});
    console.log(await loading.then((made) => JSON.stringify(made), (error) => error.code + " " + error.message));\n`,
  );
  const { stdout } = await run(process.execPath, [...flags, join(root, main)], { cwd: join(root, cwd), env });
  return stdout.trim();
}

beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "fenced-core-")));
  await mkdir(join(root, "elsewhere"));
  await install("app", "@fenced/plain", { exports: "./index.js" });
  await install("app", "@fenced/import-only", { exports: { ".": { types: "./no.d.ts", import: "./index.js" } } });
  await install("app", "@fenced/needs-another", { exports: "./index.js" }, 'import "not-there-either";\n');
  await install("app", "@fenced/broken", { exports: "./index.js" }, 'throw new Error("broken inside");\n');
  await install("app", "third-party", { exports: { "./deep": { import: { node: "./index.js" } } } });
});

afterAll(() => rm(root, { recursive: true, force: true }));

describe("a program that loads a component", { timeout: 120_000 }, () => {
  const file = (name: string): string => pathToFileURL(join(root, "app/node_modules", name, "index.js")).href;

  test("finds packages through NODE_PATH, which import ignores", async () => {
    const env = { ...process.env, NODE_PATH: join(root, "app/node_modules") };
    const printed = await loadInProgram("app/main.mjs", "elsewhere", "@fenced/plain:Made", [], env);
    expect(JSON.parse(printed)).toEqual({ from: file("@fenced/plain"), a: 1 });
    expect(await loadInProgram("app/main.mjs", "app", "@fenced/needs-another:Made", [], env)).toContain(
      "not-there-either",
    );
  });

  test("finds packages of its main script from any working directory", async () => {
    const printed = await loadInProgram("app/main.mjs", "elsewhere", "@fenced/plain:Made");
    expect(JSON.parse(printed)).toEqual({ from: file("@fenced/plain"), a: 1 });
  });

  test("finds packages of its working directory", async () => {
    const printed = await loadInProgram("elsewhere/main.mjs", "app", "@fenced/plain:Made");
    expect(JSON.parse(printed)).toEqual({ from: file("@fenced/plain"), a: 1 });
  });

  test("finds packages that can only be imported, not required", async () => {
    const printed = await loadInProgram("app/main.mjs", "elsewhere", "@fenced/import-only:Made");
    expect(JSON.parse(printed)).toEqual({ from: file("@fenced/import-only"), a: 1 });
  });

  test("finds an allowed subpath of a package", async () => {
    const printed = await loadInProgram("app/main.mjs", "app", "third-party/deep:Made", ["third-party/deep"]);
    expect(JSON.parse(printed)).toEqual({ from: file("third-party"), a: 1 });
  });

  test("is told what to install", async () => {
    const printed = await loadInProgram("app/main.mjs", "app", "@fenced/not-there:Made");
    expect(printed).toMatch(
      /^component_invalid The package @fenced\/not-there is not installed. .*npm install @fenced\/not-there$/,
    );
  });

  test("is told which dependency of a package is missing", async () => {
    const printed = await loadInProgram("app/main.mjs", "app", "@fenced/needs-another:Made");
    expect(printed).toContain("component_invalid The package @fenced/needs-another cannot be imported: ");
    expect(printed).toContain("not-there-either");
  });

  test("is told why a package cannot be loaded", async () => {
    const printed = await loadInProgram("app/main.mjs", "app", "@fenced/broken:Made");
    expect(printed).toContain("@fenced/broken cannot be imported: broken inside");
  });

  test("does not import a package that is not allowed", async () => {
    await install("app", "evil", { exports: "./index.js" }, `console.log("evil was here");\n${component}`);
    const printed = await loadInProgram("app/main.mjs", "app", "evil:Made");
    expect(printed).toMatch(/^component_invalid .* not allowed/);
    expect(await loadInProgram("app/main.mjs", "app", "evil:Made", ["evil"])).toMatch(/^evil was here/);
  });
});

describe("importPackage", () => {
  test("uses the given function", async () => {
    await expect(importPackage("a", async (specifier) => ({ specifier }))).resolves.toEqual({ specifier: "a" });
  });

  test("wraps an error thrown by the given function", async () => {
    const reason = new Error("no network");
    const error: unknown = await importPackage("a", () => Promise.reject(reason)).catch((thrown: unknown) => thrown);
    expect(error).toSatisfy(ComponentError.isInstance);
    expect(error).toMatchObject({
      cause: reason,
      message: expect.stringContaining("a cannot be imported: no network"),
    });
  });
});

describe("resolvePackage", () => {
  test("returns the file that import would load", () => {
    expect(resolvePackage("@fenced/plain", join(root, "app/main.js"))).toBe(
      pathToFileURL(join(root, "app/node_modules/@fenced/plain/index.js")).href,
    );
  });

  test("returns undefined for a missing package or subpath", () => {
    expect(resolvePackage("@fenced/plain", join(root, "elsewhere/main.js"))).toBeUndefined();
    expect(resolvePackage("@fenced/plain/part", join(root, "app/main.js"))).toBeUndefined();
    expect(resolvePackage("third-party", join(root, "app/main.js"))).toBeUndefined();
  });

  test("takes the first matching condition, in the manifest's order", async () => {
    const exports = { browser: "./no.js", require: null, node: { import: "./index.js" }, import: "./no.js" };
    await install("app", "conditions", { exports: { ".": [exports] } });
    expect(fileURLToPath(resolvePackage("conditions", join(root, "app/main.js")) ?? "")).toBe(
      join(root, "app/node_modules/conditions/index.js"),
    );
  });

  test.each([
    ["a", "a"],
    ["a/b/c", "a"],
    ["@a/b", "@a/b"],
    ["@a/b/c", "@a/b"],
  ])("%s is in the package %s", (specifier, name) => {
    expect(packageOf(specifier)).toBe(name);
  });
});
