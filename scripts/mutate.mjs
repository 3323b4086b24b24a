/**
 * Breaks packages on purpose, one line at a time, and checks that their tests notice: what the smaller run of the conformance suite
 * leaves out must not be what only that run would have found.
 *
 *   npm run mutate -- executor-docker          all mutations of a package
 *   npm run mutate -- executor-docker network  those whose description contains a word
 *   npm run mutate                             all mutations of all packages
 *   npm run mutate -- --check                  whether each mutation still fits its file; runs no tests
 *
 * `packages/NAME/test/mutations.json` lists them. Runs in a temporary copy of all files. A mutation must make a test fail; one that
 * keeps the tests from loading, or whose tests already fail without it, is a fault of the list.
 */
import { spawn, spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { copyWorkingTree } from "./packages.mjs";
import { ensureInstalled, helpIfAsked, root, userArguments } from "./workspace.mjs";

/**
 * @typedef {object} Mutations
 * @property {string} [project] - The package whose tests must notice. Default: the package itself.
 * @property {readonly string[]} tests - The test files, as vitest's filters.
 * @property {readonly Mutation[]} mutations
 */

/**
 * @typedef {object} Mutation
 * @property {string} breaks - What is then wrong.
 * @property {string} file - Relative to the package.
 * @property {string} line - Occurs exactly once in the file; without the white space around it.
 * @property {string} becomes
 * @property {string} [project] - In place of the package's.
 * @property {readonly string[]} [tests] - In place of the package's.
 */

/** @typedef {Mutation & { name: string, project: string, tests: readonly string[] }} Planned */
/** @typedef {{ passed: number, failed: readonly string[], isComplete: boolean }} Result */

/** Maximum minutes for one run: a mutation may make a test hang, which then takes all of its patience. */
const mostMinutes = 15;

/**
 * Runs a command in a PID namespace of its own, in which everything ends with the command: a mutation may break what ends hostile
 * processes. The shell, the first process there, reaps those that have lost their parent.
 */
const inNamespace = /** @type {const} */ ([
  "--pid",
  "--fork",
  "--kill-child",
  "--mount-proc",
  "sh",
  "-c",
  '"$@"; exit "$?"',
  "sh",
]);
const isContained =
  process.platform === "linux" &&
  process.getuid?.() === 0 &&
  spawnSync("unshare", [...inNamespace, "true"], { stdio: "ignore" }).status === 0;

/** @type {import("node:child_process").ChildProcess | undefined} */
let running;
/** The exit code if this program was asked to end. */
let interruption = 0;
for (const [signal, code] of /** @type {const} */ ([
  ["SIGINT", 130],
  ["SIGTERM", 143],
])) {
  // The run in the copy ends with it, and the copy is removed.
  process.on(signal, () => {
    interruption = code;
    endRun();
  });
}

/** Ends the tests that are running. */
function endRun() {
  // `unshare` ignores other signals, and takes its namespace with it.
  running?.kill(isContained ? "SIGKILL" : "SIGTERM");
}

helpIfAsked();
const words = userArguments();
const checksOnly = words.includes("--check");
const [only, ...described] = words.filter((word) => word !== "--check");
const planned = readdirSync(join(root, "packages")).flatMap((name) => mutationsOf(name));
const wrong = planned.flatMap((mutation) => problemOf(mutation) ?? []);
if (wrong.length > 0) {
  console.error(`${wrong.join("\n")}\nCorrect packages/*/test/mutations.json.`);
  process.exitCode = 1;
} else if (!checksOnly) {
  ensureInstalled();
  const chosen = planned.filter(
    ({ name, breaks }) => (only === undefined || name === only) && described.every((word) => breaks.includes(word)),
  );
  if (chosen.length === 0) {
    console.error(
      `There are no such mutations. Packages with mutations: ${[...new Set(planned.map(({ name }) => name))].join(", ")}.`,
    );
    process.exitCode = 2;
  } else {
    await mutate(chosen);
  }
}

/**
 * @param {string} name
 * @returns {Planned[]}
 */
function mutationsOf(name) {
  const file = join(root, "packages", name, "test", "mutations.json");
  if (!existsSync(file)) return [];
  const { project = name, tests, mutations } = /** @type {Mutations} */ (JSON.parse(readFileSync(file, "utf8")));
  return mutations.map((mutation) => ({ tests, project, ...mutation, name }));
}

/**
 * @param {Planned} mutation
 * @returns {string | undefined}
 */
function problemOf({ name, file, line }) {
  const path = join("packages", name, file);
  if (!existsSync(join(root, path))) return `There is no ${path}.`;
  const found = linesWith(readFileSync(join(root, path), "utf8"), line).length;
  return found === 1 ? undefined : `${path} has ${found} lines that are: ${line}`;
}

/**
 * @param {string} text
 * @param {string} line
 */
function linesWith(text, line) {
  return [...text.split("\n").entries()].filter(([, each]) => each.trim() === line);
}

/** @param {readonly Planned[]} mutations */
async function mutate(mutations) {
  const copy = mkdtempSync(join(tmpdir(), "fenced-mutate-"));
  /** @type {string[]} */
  const lived = [];
  /** @type {Map<string, Promise<string | undefined>>} */
  const baselines = new Map();
  try {
    copyWorkspace(copy);
    for (const mutation of mutations) {
      const { name, project, tests, breaks } = mutation;
      const key = [project, ...tests].join(" ");
      const baseline = baselines.get(key) ?? unusable(copy, project, tests);
      baselines.set(key, baseline);
      const reason = await baseline;
      const outcome = reason ?? (await outcomeOf(copy, mutation));
      if (interruption > 0) {
        process.exitCode = interruption;
        return;
      }
      if (!outcome.startsWith("found")) lived.push(`${name}: ${breaks}`);
      console.log(`${name}: ${breaks}\n    ${outcome}`);
    }
  } finally {
    // Tests that were ended may still write for a moment.
    rmSync(copy, { recursive: true, force: true, maxRetries: 20 });
  }
  console.log(`\n${mutations.length - lived.length} of ${mutations.length} mutations were found.`);
  for (const each of lived) console.log(`not found: ${each}`);
  process.exitCode = lived.length > 0 ? 1 : 0;
}

/**
 * Copies all files, and links what is installed: links between packages are relative, so that they lead to the copies.
 *
 * @param {string} copy
 */
function copyWorkspace(copy) {
  copyWorkingTree(copy);
  // Not all of it: bundles and modules of the copy are kept apart from those of this workspace.
  mkdirSync(join(copy, "node_modules"));
  for (const name of readdirSync(join(root, "node_modules"))) {
    if (name !== ".cache") symlinkSync(join(root, "node_modules", name), join(copy, "node_modules", name));
  }
  const folders = ["packages", "apps", "templates"].flatMap((parent) =>
    readdirSync(join(root, parent)).map((name) => join(parent, name)),
  );
  for (const folder of [...folders, "examples", "benchmarks", "test-support"]) {
    const modules = join(folder, "node_modules");
    if (!existsSync(join(root, modules))) continue;
    cpSync(join(root, modules), join(copy, modules), {
      recursive: true,
      verbatimSymlinks: true,
      // Tools keep what they like there.
      filter: (source) => !source.includes("/node_modules/."),
    });
  }
}

/**
 * Why these tests cannot notice anything; `undefined` if they can.
 *
 * @param {string} copy
 * @param {string} project
 * @param {readonly string[]} tests
 */
async function unusable(copy, project, tests) {
  const { passed, failed } = await runTests(copy, project, tests);
  if (failed.length > 0) return `cannot be tried: without a mutation, this fails: ${failed[0]}`;
  if (passed === 0) return "cannot be tried: a backend is missing, or no test file matches";
  return undefined;
}

/**
 * @param {string} copy
 * @param {Planned} mutation
 * @returns {Promise<string>}
 */
async function outcomeOf(copy, { name, file, line, becomes, project, tests }) {
  const path = join(copy, "packages", name, file);
  const text = readFileSync(path, "utf8");
  const lines = text.split("\n");
  for (const [index, each] of linesWith(text, line)) lines[index] = each.replace(line, () => becomes);
  try {
    writeFileSync(path, lines.join("\n"));
    const { passed, failed, isComplete } = await runTests(copy, project, tests);
    if (failed.length > 0) return `found by: ${failed[0]}`;
    if (!isComplete) return passed > 0 ? "found: the tests do not end" : "NOT TRIED: the tests cannot be loaded";
    return "NOT FOUND";
  } finally {
    writeFileSync(path, text);
  }
}

/**
 * Runs tests until the first one fails.
 *
 * @param {string} copy
 * @param {string} project
 * @param {readonly string[]} tests
 * @returns {Promise<Result>}
 */
async function runTests(copy, project, tests) {
  const report = join(copy, "mutation-report.json");
  rmSync(report, { force: true });
  // The smaller run is what is to be tested, on the sources, and not the run that this is a part of.
  const { FENCED_SUITE: _, FENCED_BUILT: __, FENCED_REQUIRE: ___, ...environment } = process.env;
  const options = ["--bail=1", `--project=${project}`, ...tests];
  const vitest = [join(copy, "node_modules/vitest/vitest.mjs"), "run", ...options];
  const [program, args] = isContained
    ? ["unshare", [...inNamespace, process.execPath, ...vitest]]
    : [process.execPath, vitest];
  const child = spawn(program, args, {
    cwd: copy,
    env: { ...environment, FENCED_TEST_REPORT: report },
    stdio: "ignore",
  });
  running = child;
  const timer = setTimeout(endRun, mostMinutes * 60_000);
  const status = await ended(child);
  clearTimeout(timer);
  if (!existsSync(report)) return { passed: status === null ? 1 : 0, failed: [], isComplete: false };
  const { testResults } = /** @type {{ testResults: readonly import("./outcomes.mjs").TestFile[] }} */ (
    JSON.parse(readFileSync(report, "utf8"))
  );
  const all = testResults.flatMap(({ assertionResults }) => assertionResults);
  const failed = all
    .filter((test) => test.status === "failed")
    // The first one that failed says most: the others may have been ended because of it.
    .toSorted((one, other) => endOf(one) - endOf(other))
    .map(({ fullName, failureMessages = [] }) => `${fullName}\n    ${firstLineOf(failureMessages[0] ?? "")}`);
  const passed = all.filter((test) => test.status === "passed").length;
  // A file that cannot be loaded has failed, and has no tests.
  const loaded = testResults.every((file) => file.status !== "failed" || file.assertionResults.length > 0);
  return { passed, failed, isComplete: loaded && (failed.length > 0 || status === 0) };
}

/** @param {import("./outcomes.mjs").Test} test */
function endOf({ startTime = 0, duration = 0 }) {
  return startTime + duration;
}

/** @param {string} message */
function firstLineOf(message) {
  return stripVTControlCharacters(message).split("\n", 1).join("").slice(0, 200);
}

/**
 * @param {import("node:child_process").ChildProcess} child
 * @returns {Promise<number | null>}
 */
function ended(child) {
  return new Promise((resolve) => {
    child.once("close", (status) => {
      resolve(status);
    });
  });
}
