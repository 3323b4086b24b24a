import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, open, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import vm from "node:vm";
import { Worker } from "node:worker_threads";
import { needs, slow } from "@fenced/test-support";
import { bundleProgram } from "@fenced/test-support/bundle-program";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
const program = path.join(import.meta.dirname, "fixtures", "bundled-program.ts");
/** Where the packages are found that cannot be part of a bundle. */
const cwd = path.join(import.meta.dirname, "..");

describe("bundles", slow, () => {
  let directory: string;
  let modules: string;
  let commonJs: string;
  let contents: string[];

  beforeAll(async () => {
    directory = await mkdtemp(path.join(tmpdir(), "fenced-bundles-"));
    modules = path.join(directory, "program.mjs");
    commonJs = path.join(directory, "program.cjs");
    [contents] = await Promise.all([bundleProgram(program, modules, "esm"), bundleProgram(program, commonJs, "cjs")]);
  }, 120_000);

  afterAll(() => rm(directory, { recursive: true }));

  async function workDirectory(): Promise<string> {
    const made = path.join(directory, `work-${Math.random()}`);
    await mkdir(made);
    return made;
  }

  async function answers(bundle: string, kind: string, language: string): Promise<string[]> {
    const { stdout } = await run(process.execPath, ["--no-warnings", bundle, kind, language, await workDirectory()], {
      cwd,
    });
    return stdout.trim().split("\n");
  }

  const well = JSON.stringify({ output: "42", exitCode: 0, files: [], left: [] });

  it("contain no client of Docker, whose native modules bundlers cannot handle", () => {
    expect(contents).toContain("zod");
    expect(contents).not.toContain("dockerode");
    expect(contents).not.toContain("ssh2");
  });

  describe.each(["ES modules", "CommonJS"])("of %s", (format) => {
    const bundle = (): string => (format === "CommonJS" ? commonJs : modules);

    it.each([
      ["local", "typescript"],
      ["wasm", "javascript"],
    ])("run blocks in the executor %s, in %s, and name a component's missing package", async (kind, language) => {
      const [said, missing] = await answers(bundle(), kind, language);
      expect(said).toBe(well);
      expect(missing).toContain("The package @fenced/not-there is not installed");
    });

    it("run blocks in the executor wasm, in python", async () => {
      const [said] = await answers(bundle(), "wasm", "python");
      expect(said).toBe(well);
    });

    it("run blocks in Docker, with the client that is installed", needs("docker"), async () => {
      const [said] = await answers(bundle(), "docker", "python");
      expect(said).toBe(well);
    });
  });

  it("says which package is missing where a bundle runs alone", async () => {
    // pnpm sets it for what it runs, and Node would find the workspace's packages there.
    const { NODE_PATH: _, ...env } = process.env;
    const alone = run(process.execPath, ["--no-warnings", commonJs, "wasm", "javascript", directory], {
      cwd: directory,
      env,
    });
    await expect(alone).rejects.toThrow(/was not found\. Run `npm install @fenced\/executor-wasm`/);
  });

  it("run in a context of node:vm, as in Jest and in Vitest's vm pools", async () => {
    const module: { exports: Record<string, unknown> } = { exports: {} };
    const context = vm.createContext();
    // What Node adds to JavaScript's own globals is the same in both; Symbol, Error and Promise are not.
    for (const name of Object.getOwnPropertyNames(globalThis)) {
      const own = vm.runInContext(`${JSON.stringify(name)} in globalThis`, context) === true;
      if (!own && name !== "global") Reflect.set(context, name, Reflect.get(globalThis, name));
    }
    const text = `(module, exports, require) => {${await readFile(commonJs, "utf8")}\n}`;
    const load: unknown = vm.runInContext(text, context, { filename: commonJs });
    if (typeof load !== "function") throw new Error("not a function");
    Reflect.apply(load, undefined, [module, module.exports, createRequire(path.join(cwd, "main.js"))]);
    const { symbols, run: start } = module.exports;
    expect(symbols).toBe("symbol,symbol");
    if (typeof start !== "function") throw new Error("not a function");
    expect(await Reflect.apply(start, undefined, ["local", "javascript", await workDirectory()])).toBe(well);
  });

  it("run in a worker thread, whose end closes no descriptor of the program", async () => {
    const text = `
      const { parentPort, workerData } = require("node:worker_threads");
      const { run } = require(workerData.bundle);
      parentPort.once("message", () => parentPort.close());
      run("local", "javascript", workerData.workDir).then((said) => parentPort.postMessage(said));
    `;
    const workerData = { bundle: commonJs, workDir: await workDirectory() };
    const worker = new Worker(text, { eval: true, workerData });
    const [said]: unknown[] = await once(worker, "message");
    expect(said).toBe(well);
    // They get the numbers that the worker has used and given back.
    const files = await Promise.all(Array.from({ length: 64 }, () => open(commonJs)));
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    worker.postMessage("end");
    await once(worker, "exit");
    const sizes = await Promise.allSettled(files.map(async (file) => (await file.stat()).size));
    await Promise.allSettled(files.map((file) => file.close()));
    expect(sizes.filter(({ status }) => status === "rejected")).toEqual([]);
  });
});
