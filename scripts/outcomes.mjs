/**
 * Counts what tasks did: each test of a task with a report, which turbo replays with the task, and every other task once. A test file
 * that failed before its first test counts as one failure, and so does a task without a report, or one that failed without a failed
 * test.
 */
import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { root } from "./workspace.mjs";

/** @typedef {{ status: string, fullName: string, failureMessages?: string[], startTime?: number, duration?: number }} Test */
/** @typedef {{ name: string, status: string, message: string, assertionResults: Test[] }} TestFile */

/**
 * @typedef {object} Outcome
 * @property {string} name - `executor-docker#test`, or `knip` for a task of the whole workspace.
 * @property {number} seconds
 * @property {boolean} cached
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 * @property {readonly string[]} failures - One text for each, of a few lines.
 */

/** Maximum number of lines of a message to show: CI may print only its last hundred lines. */
const mostLines = 8;
const mostLogLines = 15;

/**
 * @param {import("./tasks.mjs").Task} task
 * @returns {Outcome}
 */
export function outcomeOf(task) {
  const { execution, cache } = task;
  const started = execution ?? { startTime: 0, endTime: 0, exitCode: 1 };
  const counted = task.task.startsWith("test")
    ? countTests(join(root, task.directory, ".reports", `${task.task.replace(":", "-")}.json`), started.exitCode)
    : { passed: Number(started.exitCode === 0), failed: Number(started.exitCode !== 0), skipped: 0, failures: [] };
  const failures = counted.failed > 0 && counted.failures.length === 0 ? [endOfLog(task)] : counted.failures;
  return {
    name: task.taskId.replace(/^@fenced\/|^\/\/#/, ""),
    seconds: (started.endTime - started.startTime) / 1000,
    cached: cache.status === "HIT",
    ...counted,
    failures,
  };
}

/**
 * @param {readonly Outcome[]} outcomes
 * @returns {string} "N passed, N failed, N skipped"
 */
export function sumOf(outcomes) {
  /** @param {"passed" | "failed" | "skipped"} key */
  const sum = (key) => outcomes.reduce((total, outcome) => total + outcome[key], 0);
  return `${sum("passed")} passed, ${sum("failed")} failed, ${sum("skipped")} skipped`;
}

/**
 * @param {string} file
 * @param {number} exitCode
 */
function countTests(file, exitCode) {
  const report = /** @type {{ testResults: TestFile[] } | undefined} */ (
    existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined
  );
  const counts = { passed: 0, failed: 0, skipped: 0, failures: /** @type {string[]} */ ([]) };
  for (const { name, status, message, assertionResults } of report?.testResults ?? []) {
    const failed = assertionResults.filter((test) => test.status === "failed");
    const testFile = relative(root, name);
    for (const { fullName, failureMessages = [] } of failed) {
      counts.failures.push(described(`${testFile}: ${fullName}`, failureMessages.join("\n")));
    }
    if (status === "failed" && failed.length === 0) counts.failures.push(described(testFile, message));
    const passed = assertionResults.filter((test) => test.status === "passed").length;
    counts.passed += passed;
    counts.failed += status === "failed" ? Math.max(1, failed.length) : failed.length;
    counts.skipped += assertionResults.length - passed - failed.length;
  }
  if (counts.failed === 0 && (report === undefined || exitCode !== 0)) counts.failed = 1;
  return counts;
}

/**
 * @param {string} title
 * @param {string} message
 */
function described(title, message) {
  const lines = stripVTControlCharacters(message)
    .split("\n")
    .filter((line) => line.trim() !== "" && !/^\s+at .*(node_modules|node:)/.test(line))
    .slice(0, mostLines);
  return [title, ...lines.map((line) => `    ${line.slice(0, 300)}`)].join("\n");
}

/** @param {import("./tasks.mjs").Task} task */
function endOfLog({ execution, logFile }) {
  if (execution === undefined) return "    It did not run, because something that it needs has failed.";
  // A task of the root has no log of its own when nothing keeps its outcome.
  if (logFile === undefined) return "    What it printed is above.";
  const log = join(root, logFile);
  const text = existsSync(log) ? stripVTControlCharacters(readFileSync(log, "utf8")).trimEnd() : "There is no log.";
  return text
    .split("\n")
    .slice(-mostLogLines)
    .map((line) => `    ${line.slice(0, 300)}`)
    .join("\n");
}
