import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { delimiter, join } from "node:path";
import { defaultClientConditions, defaultServerConditions } from "vite";
import { defineConfig, type TestProjectConfiguration } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { BackendReporter } from "./test-support/backend-reporter.ts";
import { type BackendName, detectBackends, requiredBackends } from "./test-support/backends.ts";
import { folderOfNodeAlone } from "./test-support/node-alone.mjs";
import { pathWithoutShims } from "./test-support/path-without-shims.ts";

const root = import.meta.dirname;
const required = requiredBackends(process.env.FENCED_REQUIRE);
const report = process.env.FENCED_TEST_REPORT;

// However vitest was started, programs that tests start find the workspace's tools, tsx among them.
// Vitest loads this file anew for each project; looking for Python and for backends takes seconds, so that it is done once a process.
declare global {
  var fencedPath: string | undefined;
  var fencedBackends: ReturnType<typeof detectBackends> | undefined;
}
process.env.PATH = globalThis.fencedPath ??= [
  join(root, "node_modules", ".bin"),
  pathWithoutShims(process.env.PATH ?? ""),
].join(delimiter);
// Links rather than copies, in a place that is removed with the dependencies.
const pathOfNodeAlone = [
  join(root, "node_modules", ".bin"),
  folderOfNodeAlone(join(root, "node_modules/.cache/fenced-test"), process.env.PATH),
].join(delimiter);
const backends = await (globalThis.fencedBackends ??= detectBackends(process.env.FENCED_BACKENDS));

// A new folder for each state of the lockfile: Vitest removes what was cached with another one, also under tasks that are using it.
const lockfile = createHash("sha256").update(readFileSync(join(root, "node_modules/.pnpm/lock.yaml")));
const moduleCache = join(root, "node_modules/.cache/fenced-test", `modules-${lockfile.digest("hex").slice(0, 16)}`);

// Dependencies are loaded by Node, which does not know this condition: what it leads to need not be what Node can load.
const nodeConditions = defaultServerConditions.filter((condition) => condition !== "module");

const folders = ["packages", "apps"].flatMap((parent) =>
  readdirSync(join(root, parent)).map((name) => ({ name, root: join(root, parent, name) })),
);
folders.push({ name: "test-support", root: join(root, "test-support") });

/**
 * Projects whose test files each use a server or cluster of their own in a shared module, and stop it at the end of the file, with the
 * backend for that. Without it they need no processes of their own, which take most of the time.
 */
const isolated = new Map<string, BackendName>([
  ["executor-kubernetes", "kubernetes"],
  ["executor-ssh", "ssh"],
]);
function isIsolated(name: string): boolean {
  const backend = isolated.get(name);
  return backend !== undefined && backends[backend].available;
}

// Both majors of the AI SDK that the packages allow are tested: the newer one under another name.
const onVersion7 = ["ai-sdk", "model-ai-sdk"].map((name): TestProjectConfiguration => ({
  extends: true,
  root: join(root, "packages", name),
  resolve: {
    alias: [
      { find: /^ai$/, replacement: "ai-7" },
      { find: /^ai\/test$/, replacement: "ai-7/test" },
      { find: /^@ai-sdk\/openai-compatible$/, replacement: "openai-compatible-3" },
      { find: /^@ai-sdk\/anthropic$/, replacement: "anthropic-4" },
    ],
  },
  test: { name: `${name}-on-ai-7`, include: ["test/**/*.test.ts"] },
}));

/** The names in `--project=NAME`. Vitest makes a server of its own for each project before it looks at them. */
const wanted = process.argv.flatMap((word) => /^--project=(.+)$/.exec(word)?.[1] ?? []);
const areNames = wanted.length > 0 && wanted.every((name) => /^[a-z\d-]+$/.test(name));

function isWanted(project: TestProjectConfiguration): boolean {
  if (!areNames || typeof project !== "object" || !("test" in project)) return true;
  return typeof project.test?.name === "string" && wanted.includes(project.test.name);
}

/** Starts files that run the conformance suite first: they take minutes, and the others find their places beside them. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- the sequencer's own, which returns a new array
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => readFileSync(moduleId, "utf8").includes("testCodeExecutor(");
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

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
    // Test files do not affect each other, apart from those of isolated projects: they share processes and load their imports once.
    isolate: false,
    // Three also on two cores: most of the time tests wait for interpreters, kernels and containers to start and to end. A task of
    // turbo runs beside others; see scripts/test-package.mjs.
    maxWorkers: Number(process.env.FENCED_WORKERS ?? Math.max(3, Math.min(4, availableParallelism()))),
    // Of cases that wait: each has a container or a kernel of its own to start, and all workers do that at once.
    maxConcurrency: 3,
    // They only end what hangs: what takes a few seconds takes more than a minute on a machine that has other things to do.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 10_000,
    expect: { poll: { timeout: 60_000 } },
    passWithNoTests: true,
    // Dozens of tasks load the same sources.
    experimental: {
      fsModuleCache: process.env.CI !== undefined || process.env.TURBO_HASH !== undefined,
      fsModuleCachePath: moduleCache,
    },
    sequence: { sequencer: LongestFirst },
    provide: { backends, pathOfNodeAlone },
    setupFiles: [join(root, "test-support/only-what-it-names.ts")],
    reporters: ["default", new BackendReporter(backends, required), ...(report === undefined ? [] : ["json"])],
    ...(report === undefined ? {} : { outputFile: { json: report } }),
    projects: folders
      .filter((folder) => existsSync(join(folder.root, "package.json")))
      .map((folder): TestProjectConfiguration => ({
        extends: true,
        root: folder.root,
        test: { name: folder.name, include: ["test/**/*.test.ts"], isolate: isIsolated(folder.name) },
      }))
      .concat(onVersion7)
      .filter(isWanted),
  },
});
