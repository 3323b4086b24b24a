/** Prints "passed failed skipped" of a vitest JSON report. A file that failed before its first test counts as one failure. */
import { readFileSync } from "node:fs";

const [file = ""] = process.argv.slice(2);
const report = /** @type {{ testResults: { status: string, assertionResults: { status: string }[] }[] }} */ (
  JSON.parse(readFileSync(file, "utf8"))
);

const counts = { passed: 0, failed: 0, skipped: 0 };
for (const { status, assertionResults } of report.testResults) {
  const failedTests = assertionResults.filter((test) => test.status === "failed").length;
  const passedTests = assertionResults.filter((test) => test.status === "passed").length;
  counts.passed += passedTests;
  counts.failed += status === "failed" ? Math.max(1, failedTests) : failedTests;
  counts.skipped += assertionResults.length - passedTests - failedTests;
}
console.log(counts.passed, counts.failed, counts.skipped);
