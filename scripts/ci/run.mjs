/**
 * Everything that must hold before a change is merged; from nothing it has to end in twelve minutes on two cores.
 *
 *   .ci/run                     all gates
 *   .ci/run group NAME...       the gates of these groups; the workflow has a job for each
 *   .ci/run gate NAME...        these gates, on a machine that has the backends: starts and stops nothing
 *   .ci/run gates               lists the groups and their gates
 *
 * A gate is a task of `turbo.json`, of one package (`executor-docker#test`) or of the workspace (`knip`). Turbo runs what has changed
 * since it last passed on this machine, and replays the rest with its counts. With FENCED_SUITE=full, as in `.ci/full`, everything
 * runs. A failed gate keeps no other gate from running, unless that needs it. The last line is the sum: "N passed, N failed, N
 * skipped", each test and each other gate counted once.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { outcomeOf, sumOf } from "../outcomes.mjs";
import { runTasks } from "../tasks.mjs";
import { aboutScript, root } from "../workspace.mjs";

/** @typedef {import("../outcomes.mjs").Outcome} Outcome */

const full = process.env.FENCED_SUITE === "full";
/** What runs while backends are installed, and needs nothing but Node. */
const statics = ["build", "typecheck", "typecheck:scripts", "lint", "lint:scripts", "format:check", "snippets"];
statics.push("commands", "knip", "mutations", "publint", "attw");
if (full) statics.push("docs:build", "release:dry-run");
else statics.push("installs");

const ofPackages = ["test", "test:conformance"];
/** How many tasks with tests run at a time. Each runs one or two files, and half of their time is spent waiting for what they start. */
const testTasks = Math.max(3, Math.ceil(availableParallelism() * 1.5));
/** Of the others, the longest first. */
const others = ["test:node-24", "@fenced/examples#examples", "@fenced/executor-kubernetes#test", "@fenced/demo#demo"];
others.push("node-alone");
// They need shellcheck.
others.push("programs", "lint:shell");
if (full) others.push("installs", "check:platforms", "test:node-22", "check:new-executor", "mutate");

/** Packages whose tests mostly start and end something that takes long, so that a job of the workflow has one of them. */
const slow = ["executor-aca", "executor-docker", "executor-jupyter", "executor-local", "executor-ssh", "executor-wasm"];

/** @type {Readonly<Record<string, { tasks: readonly string[], filters?: readonly string[] }>>} */
const groups = {
  static: { tasks: statics },
  packages: { tasks: ["test"], filters: [...slow, "executor-kubernetes"].map((name) => `!@fenced/${name}`) },
  ...Object.fromEntries(slow.map((name) => [name, { tasks: ofPackages, filters: [`@fenced/${name}`] }])),
  others: { tasks: others },
};

/** Everything that this process has started and that has not ended. */
const running = new Set();
/** The registry's host is nobody's business. */
const registry = spawnSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).stdout.trim() || "<none>";
/** Much more than it takes: where starting a process takes four times as long, as on some virtual machines, so does this. */
const minutes = Number(process.env.FENCED_CI_MINUTES ?? (full ? 240 : 100));

const startedAt = Date.now();
const temporary = mkdtempSync(join(tmpdir(), "ci-"));
const before = join(temporary, "before");
/** @type {Outcome[]} */
const outcomes = [];
let stopsDaemon = false;

for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM"])) {
  process.once(signal, () => {
    endAll();
    cleanUp();
    process.exit(signal === "SIGINT" ? 130 : 143);
  });
}

const [command = "", ...names] = process.argv.slice(2);
if (command === "") await runGroups(Object.keys(groups));
else if (command === "group" && names.length > 0 && names.every((name) => name in groups)) await runGroups(names);
else if (command === "gate" && names.length > 0) await runGates(names);
else if (command === "gates") listGates();
else {
  console.log(aboutScript());
  process.exitCode = 2;
}
rmSync(temporary, { recursive: true, force: true });

/** @param {readonly string[]} chosen - The names of groups. */
async function runGroups(chosen) {
  try {
    writeFileSync(before, leftovers());
    // Nothing else can run without it.
    if (!(await step("install", "node", "scripts/install.mjs"))) return;
    const tests = chosen.filter((name) => name !== "static");
    await Promise.all([
      tests.length > 0 ? startBackends() : undefined,
      chosen.includes("static") ? turbo(groups.static?.tasks ?? []) : undefined,
    ]);
    if (full && tests.includes("others")) await step("kubernetes", "scripts/ci/kubernetes.sh", "up");
    // All together, so that one group's tests run while another's wait.
    const isAll = tests.length === Object.keys(groups).length - 1;
    const runs = isAll ? [{ tasks: [...ofPackages, ...others] }] : tests.flatMap((name) => groups[name] ?? []);
    for (const { tasks, filters } of runs) await turbo(tasks, filters, testTasks);
    if (full && tests.includes("others")) await testOutages();
    await step("leaks", "scripts/ci/leaks.sh", "check", before);
  } finally {
    cleanUp();
    report();
  }
}

/** @param {readonly string[]} gates */
async function runGates(gates) {
  writeFileSync(before, leftovers());
  const tasks = gates.filter((name) => name !== "leaks");
  if (tasks.length > 0) await turbo(tasks.map((name) => (/^[a-z-]+#/.test(name) ? `@fenced/${name}` : name)));
  await step("leaks", "scripts/ci/leaks.sh", "check", before);
  report();
}

function listGates() {
  for (const [name, { tasks, filters = [] }] of Object.entries(groups)) {
    console.log(`${name.padEnd(18)} ${[...tasks, ...filters.map((filter) => `--filter=${filter}`)].join(" ")}`);
  }
}

async function startBackends() {
  // A daemon that another run has started is that run's.
  stopsDaemon = spawnSync("docker", ["version"]).status !== 0;
  await step("debian", "scripts/ci/backends.sh", "install");
  await step("backends", "scripts/ci/backends.sh", "up");
  // What the daemons have of their own.
  appendFileSync(before, leftovers().replaceAll(/^(?!docker |podman ).*\n/gm, ""));
}

/** Kills parts of a cluster, which no other test survives. */
async function testOutages() {
  const words = ["with", "node", "scripts/test.mjs", "--project=executor-kubernetes", "outages"];
  process.env.FENCED_KUBERNETES_OUTAGES = "1";
  await step("outages", "scripts/ci/kubernetes.sh", ...words);
}

/**
 * @param {readonly string[]} tasks
 * @param {readonly string[]} [filters]
 * @param {number} [concurrency] - Default: that of `turbo.json`.
 */
async function turbo(tasks, filters = [], concurrency) {
  const options = ["--continue", "--output-logs=errors-only", "--log-order=grouped", ...(full ? ["--force"] : [])];
  if (concurrency !== undefined) options.push(`--concurrency=${concurrency}`);
  options.push(...filters.map((each) => `--filter=${each}`));
  const { status, tasks: done } = await runTasks(tasks, { turboArguments: options, watch: follow }).catch(
    (/** @type {unknown} */ error) => {
      console.log(String(error));
      return { status: 1, tasks: [] };
    },
  );
  const found = done.map((task) => outcomeOf(task));
  // A task that others need is in each of their runs.
  outcomes.push(...found.filter(({ name }) => !outcomes.some((known) => known.name === name)));
  if (found.length === 0 || (status !== 0 && found.every(({ failed }) => failed === 0))) {
    outcomes.push(
      plainOutcome(`turbo run ${tasks.join(" ")}`, status === 0 ? 1 : status, 0, "    turbo failed: see above."),
    );
  }
}

/**
 * A gate that is no task.
 *
 * @param {string} name
 * @param {string} program
 * @param {readonly string[]} words
 * @returns {Promise<boolean>} whether it passed.
 */
async function step(name, program, ...words) {
  const began = Date.now();
  console.log(`... ${name}`);
  const child = spawn(program, words, { cwd: root, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const text = follow(child);
  await once(child, "close");
  outcomes.push(
    plainOutcome(name, child.exitCode, (Date.now() - began) / 1000, text().split("\n").slice(-15).join("\n")),
  );
  return child.exitCode === 0;
}

/**
 * @param {string} name
 * @param {number | null} status
 * @param {number} seconds
 * @param {string} message
 * @returns {Outcome}
 */
function plainOutcome(name, status, seconds, message) {
  const failed = Number(status !== 0);
  return { name, seconds, cached: false, passed: 1 - failed, failed, skipped: 0, failures: failed ? [message] : [] };
}

/**
 * Passes on what a process prints, line by line, and ends it when the run's time is over.
 *
 * @param {import("node:child_process").ChildProcess} child
 * @returns {() => string} the last of what it printed.
 */
function follow(child) {
  running.add(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) {
    let rest = "";
    stream?.setEncoding("utf8").on("data", (/** @type {string} */ chunk) => {
      const lines = (rest + chunk.replaceAll("\r", "")).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) console.log(line.replaceAll(registry, "<registry>/"));
      text = (text + chunk).slice(-10_000);
    });
  }
  const timer = setTimeout(
    () => {
      console.log(`The run has taken ${minutes} minutes: what still runs is ended.`);
      endAll();
    },
    minutes * 60_000 - (Date.now() - startedAt),
  );
  child.once("close", () => {
    clearTimeout(timer);
    running.delete(child);
  });
  return () => text;
}

function endAll() {
  for (const { pid } of running) {
    try {
      if (pid !== undefined) process.kill(-pid, "SIGTERM");
    } catch {
      // It has ended.
    }
  }
}

function leftovers() {
  return spawnSync(join(root, "scripts/ci/leaks.sh"), ["list"], { encoding: "utf8" }).stdout;
}

function cleanUp() {
  if (full) spawnSync(join(root, "scripts/ci/kubernetes.sh"), ["down"], { stdio: "inherit" });
  if (stopsDaemon) spawnSync(join(root, "scripts/ci/docker.sh"), ["down"], { stdio: "inherit" });
}

/** Prints a table of the gates, then what has failed, and as the last line the sum. */
function report() {
  const rows = outcomes.toSorted((one, other) => other.seconds - one.seconds);
  console.log(`\n${"gate".padEnd(34)} seconds  passed  failed skipped`);
  for (const { name, seconds, cached, passed, failed, skipped } of rows) {
    const counts = [passed, failed, skipped].map((count) => String(count).padStart(7)).join(" ");
    const time = cached ? "cached" : seconds.toFixed(0);
    console.log(`${name.padEnd(34)} ${time.padStart(7)} ${counts}${failed > 0 ? "  FAILED" : ""}`);
  }
  console.log(`in all ${((Date.now() - startedAt) / 1000).toFixed(0)} s\n`);
  for (const { name, failed, failures } of rows) {
    if (failed === 0) continue;
    console.log(`FAILED in ${name}:\n${failures.slice(0, 10).join("\n").replaceAll(registry, "<registry>/")}\n`);
  }
  console.log(sumOf(outcomes));
  process.exitCode = outcomes.some(({ failed }) => failed > 0) ? 1 : 0;
}
