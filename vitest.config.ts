import { existsSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { delimiter, join } from "node:path";
import { defaultClientConditions, defaultServerConditions } from "vite";
import { defineConfig } from "vitest/config";
import { BackendReporter } from "./test-support/backend-reporter.ts";
import { detectBackends, requiredBackends } from "./test-support/backends.ts";

const root = import.meta.dirname;
const required = requiredBackends(process.env.FENCED_REQUIRE);
const report = process.env.FENCED_TEST_REPORT;

// However vitest was started, programs that tests start find the workspace's tools, tsx among them.
process.env.PATH = `${join(root, "node_modules", ".bin")}${delimiter}${process.env.PATH ?? ""}`;

// Vitest loads this file anew for each project; looking for backends takes seconds, so that it is done once a process.
declare global {
  var fencedBackends: ReturnType<typeof detectBackends> | undefined;
}
const backends = await (globalThis.fencedBackends ??= detectBackends());

// Dependencies are loaded by Node, which does not know this condition: what it leads to need not be what Node can load.
const nodeConditions = defaultServerConditions.filter((condition) => condition !== "module");

const folders = ["packages", "apps"].flatMap((parent) =>
  readdirSync(join(root, parent)).map((name) => ({ name, root: join(root, parent, name) })),
);
folders.push({ name: "test-support", root: join(root, "test-support") });

export default defineConfig({
  // Workspace packages are taken from their sources: nothing has to be built before tests run.
  resolve: { conditions: ["@fenced/source", ...defaultClientConditions] },
  ssr: {
    resolve: {
      conditions: ["@fenced/source", ...nodeConditions],
      externalConditions: ["@fenced/source"],
    },
  },
  // Node 20 knows Symbol.asyncDispose but not the syntax `await using`.
  oxc: { target: "es2023" },
  test: {
    pool: "forks",
    // Three also on two cores: most of the time tests wait for interpreters, kernels and containers to start and to end.
    maxWorkers: Math.max(3, Math.min(4, availableParallelism())),
    // CI's machines are shared: a test that real processes, containers and kernels made fail gets a second try there,
    // and the report says so. At home it fails at once.
    retry: process.env.CI === undefined ? 0 : 1,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000,
    passWithNoTests: true,
    provide: { backends },
    reporters: ["default", new BackendReporter(backends, required), ...(report === undefined ? [] : ["json"])],
    ...(report === undefined ? {} : { outputFile: { json: report } }),
    projects: folders
      .filter((folder) => existsSync(join(folder.root, "package.json")))
      .map((folder) => ({
        extends: true,
        root: folder.root,
        test: { name: folder.name, include: ["test/**/*.test.ts"] },
      })),
  },
});
