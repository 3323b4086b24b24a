/**
 * Runs the tests of the package in the current directory with vitest, and keeps its report in `.reports`, from which
 * `scripts/outcomes.mjs` counts: also when turbo has replayed the task. Arguments are vitest's.
 */
import { rmSync } from "node:fs";
import { basename, join } from "node:path";
import { runAndExit } from "./workspace.mjs";

const folder = process.cwd();
const name = basename(folder);
const task = process.env.npm_lifecycle_event ?? "test";
const report = join(folder, ".reports", `${task.replace(":", "-")}.json`);
// A run that ends before it writes one must not be counted by that of an earlier one.
rmSync(report, { force: true });
process.env.FENCED_TEST_REPORT = report;
// Turbo runs several packages at a time, so that one process for each keeps all cores busy; a second one loads all modules again. But
// for a package whose tests mostly wait, for containers, kernels, interpreters and other hosts, all the others would wait at the end.
const waits = /^(?:demo|executor-(?:aca|docker|jupyter|kubernetes|local|ssh|testkit|wasm))$/.test(name);
process.env.FENCED_WORKERS ??= waits && process.env.FENCED_SUITE !== "quick" ? "2" : "1";
// The commands that tests start are built.
process.env.FENCED_BUILT = "1";
// Two packages are tested with both majors of the AI SDK, in a second project.
const projects = [`--project=${name}`, `--project=${name}-on-ai-7`];
runAndExit("node_modules/vitest/vitest.mjs", ["run", ...projects, ...process.argv.slice(2)]);
