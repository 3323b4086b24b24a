/**
 * Prints "passed failed skipped" from a vitest JSON report, and the failures to stderr. A file that failed before its first test
 * counts as one failure, and so does a run without a report, or one that failed (its exit code is the second argument) without a
 * failed test.
 */
import { existsSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { stripVTControlCharacters } from "node:util";

/** @typedef {{ status: string, fullName: string, failureMessages?: string[] }} Test */
/** @typedef {{ name: string, status: string, message: string, assertionResults: Test[] }} TestFile */

/** Maximum number of lines of a message to show: CI may print only its last hundred lines. */
const mostLines = 8;

const [file = "", exitCode = "0"] = process.argv.slice(2);
const report = /** @type {{ testResults: TestFile[] } | undefined} */ (
  existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined
);

const counts = { passed: 0, failed: 0, skipped: 0 };
for (const { name, status, message, assertionResults } of report?.testResults ?? []) {
  const failed = assertionResults.filter((test) => test.status === "failed");
  const failedTests = failed.length;
  const testFile = relative(process.cwd(), name);
  for (const { fullName, failureMessages = [] } of failed) show(`${testFile}: ${fullName}`, failureMessages.join("\n"));
  if (status === "failed" && failedTests === 0) show(testFile, message);
  const passedTests = assertionResults.filter((test) => test.status === "passed").length;
  counts.passed += passedTests;
  counts.failed += status === "failed" ? Math.max(1, failedTests) : failedTests;
  counts.skipped += assertionResults.length - passedTests - failedTests;
}
if (counts.failed === 0 && (report === undefined || exitCode !== "0")) counts.failed = 1;
console.log(counts.passed, counts.failed, counts.skipped);

/**
 * @param {string} title
 * @param {string} message
 */
function show(title, message) {
  const lines = stripVTControlCharacters(message)
    .split("\n")
    .filter((line) => line.trim() !== "" && !/^\s+at .*(node_modules|node:)/.test(line))
    .slice(0, mostLines);
  console.error(`${title}\n${lines.map((line) => `    ${line.slice(0, 300)}`).join("\n")}`);
}
