import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");

interface Manifest {
  readonly name: string;
  readonly scripts?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

function read(file: string): string {
  return readFileSync(join(root, file), "utf8");
}

function manifest(folder: string): Manifest {
  return JSON.parse(read(join(folder, "package.json"))) as Manifest;
}

/** The text of all modules of a folder. */
function sourcesOf(folder: string): string {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => read(join(folder, file)))
    .join("\n");
}

const packages = readdirSync(join(root, "packages")).map((name) => `packages/${name}`);

// What the project was asked to be made of.
describe("the repository", () => {
  it.each([
    "package.json",
    "pnpm-workspace.yaml",
    "turbo.json",
    "packages",
    "apps",
    ".changeset",
    "tsconfig.base.json",
  ])("has %s at the top", (file) => {
    expect(existsSync(join(root, file))).toBe(true);
  });

  it.each([
    ["packages/core", "@fenced/core"],
    ["packages/executor-local", "@fenced/executor-local"],
    ["packages/executor-docker", "@fenced/executor-docker"],
    ["packages/executor-jupyter", "@fenced/executor-jupyter"],
    ["packages/executor-aca", "@fenced/executor-aca"],
    ["packages/agentchat", "@fenced/agentchat"],
    ["apps/demo", "@fenced/demo"],
  ])("has %s", (folder, name) => {
    expect(manifest(folder).name).toBe(name);
  });

  it.each([
    ["dockerode", "packages/docker-daemon", "the daemon"],
    ["@jupyterlab/services", "packages/executor-jupyter", "servers and kernels"],
    ["@azure/identity", "packages/executor-aca", "access tokens"],
    ["undici", "packages/executor-aca", "requests to the service"],
  ])("has %s in %s for %s, as a dependency that its sources import", (name, folder) => {
    const { dependencies, peerDependencies } = manifest(folder);
    expect({ ...dependencies, ...peerDependencies }).toHaveProperty([name]);
    expect(sourcesOf(join(folder, "src"))).toMatch(new RegExp(`(?:from|import\\()\\s*"${name}[/"]`));
  });
});

describe("turbo", () => {
  const { scripts = {}, devDependencies = {} } = manifest(".");

  it("runs what the scripts at the top name, and CI", () => {
    expect(devDependencies).toHaveProperty("turbo");
    for (const name of ["build", "typecheck", "lint", "check"]) expect(scripts[name]).toContain("scripts/turbo.mjs");
    expect(scripts["test"]).toContain("scripts/test.mjs");
    for (const file of ["scripts/turbo.mjs", "scripts/test.mjs", "scripts/ci/run.mjs"]) {
      expect(read(file)).toMatch(/runTasks\(/);
    }
    expect(read("scripts/tasks.mjs")).toContain('"node_modules", "turbo", "bin", "turbo"');
    expect(read(".ci/run")).toContain("scripts/ci/run.mjs");
  });

  it("has the tasks of every package, none of which starts turbo itself", () => {
    for (const folder of packages) {
      const own = manifest(folder).scripts ?? {};
      expect({ folder, tasks: Object.keys(own) }).toMatchObject({
        tasks: expect.arrayContaining(["build", "typecheck", "lint", "test"]),
      });
      for (const command of Object.values(own)) expect(command).not.toContain("turbo");
    }
  });

  // Without git, turbo looks for these in `node_modules`, too: for a minute, and then fails at a launcher whose program is not built.
  it("finds the files of packages without git", () => {
    const folders = [...packages, "apps/demo", "apps/site", "examples", "test-support", "."];
    for (const file of folders
      .map((folder) => join(folder, "turbo.json"))
      .filter((each) => existsSync(join(root, each)))) {
      expect({ file, text: read(file) }).toMatchObject({ text: expect.not.stringContaining('"$TURBO_DEFAULT$"') });
    }
  });

  it("knows of each file outside a package that its tests read", () => {
    const reads = /["'`](?:\.\.\/)+((?:packages|apps|docs|scripts|examples|templates)\/[^"'`]+)["'`]/g;
    // The paths in the tests of apps/site are those of links.
    for (const folder of [...packages, "apps/demo"]) {
      const { dependencies, devDependencies: others, peerDependencies } = manifest(folder);
      const used = Object.keys({ ...dependencies, ...others, ...peerDependencies });
      const declared = existsSync(join(root, folder, "turbo.json")) ? read(join(folder, "turbo.json")) : "";
      for (const [, file = ""] of sourcesOf(join(folder, "test")).matchAll(reads)) {
        const [parent = "", name = ""] = file.split("/");
        const isKnown = used.includes(`@fenced/${name}`) || declared.includes(`$TURBO_ROOT$/${parent}/${name}`);
        expect({ folder, file, isKnown }).toMatchObject({
          isKnown: parent === "docs" ? declared.includes("docs/") : true,
        });
      }
    }
  });
});

describe("changesets and vitest", () => {
  it("write versions and changelogs, and run all tests", () => {
    const { scripts = {}, devDependencies = {} } = manifest(".");
    expect(devDependencies).toHaveProperty(["@changesets/cli"]);
    expect(scripts["version-packages"]).toContain("changeset version");
    expect(read(".github/workflows/release.yml")).toContain("changeset publish");
    expect(devDependencies).toHaveProperty("vitest");
    for (const folder of packages) expect(manifest(folder).scripts?.["test"]).toContain("scripts/test-package.mjs");
    expect(read("scripts/test-package.mjs")).toContain("node_modules/vitest/vitest.mjs");
  });
});
