/**
 * `npm test`: the tests that need nothing but Node. `npm run test:all`: all tests, with everything that this machine has.
 * `npm test -- --filter=@fenced/core`, also with `--all`: the same for one package; filters are turbo's.
 * `npm test -- --project=core file`: some tests, with everything that this machine has; arguments are vitest's.
 */
import { outcomeOf, sumOf } from "./outcomes.mjs";
import { runTasks } from "./tasks.mjs";
import { ensureInstalled, runAndExit, userArguments } from "./workspace.mjs";

const args = userArguments();
const all = args.includes("--all");
const filters = args.filter((argument) => argument.startsWith("--filter="));
if (args.length > filters.length + Number(all)) {
  ensureInstalled();
  runAndExit("node_modules/vitest/vitest.mjs", ["run", ...args]);
} else {
  console.log(
    all
      ? "Runs all tests that this machine has the backends for: up to half an hour on two cores, less where nothing has changed."
      : "Runs the tests that need nothing but Node and are not slow: two to four minutes on two cores. To run everything: npm run test:all",
  );
  await runPackages();
}

async function runPackages() {
  // Every other suite needs a backend.
  const suites = all || filters.length > 0 ? "test:conformance" : "@fenced/executor-wasm#test:conformance";
  const { status, tasks, backends } = await runTasks(["test", suites], {
    turboArguments: ["--continue", "--output-logs=errors-only", "--log-order=grouped", ...filters],
    env: all ? {} : { FENCED_WITHOUT: "all,!node,!typescript", FENCED_SUITE: process.env.FENCED_SUITE ?? "quick" },
  });
  const outcomes = tasks.filter(({ task }) => task.startsWith("test")).map((task) => outcomeOf(task));
  for (const { name, failures } of outcomes.filter(({ failed }) => failed > 0)) {
    console.log(`\nFAILED in ${name}:\n${failures.join("\n")}`);
  }
  console.log(`\n${sumOf(outcomes)}`);
  if (!all) console.log("To run what was skipped, as far as this machine can: npm run test:all");
  else for (const line of missing(backends)) console.log(line);
  process.exitCode = status;
}

/** @param {import("./tasks.mjs").Backends} backends */
function missing(backends) {
  return Object.entries(backends)
    .filter(([, { available }]) => !available)
    .map(([name, { reason, remedy }]) => `skipped what needs ${name}: ${reason}. To get it: ${remedy}.`);
}
