/**
 * `npm test`: the tests that need nothing but Node. `npm run test:all`: all tests, with everything that this machine has.
 * `npm test -- --project=core file`: some tests, with everything that this machine has; arguments are vitest's.
 */
import { outcomeOf, sumOf } from "./outcomes.mjs";
import { runTasks } from "./tasks.mjs";
import { ensureInstalled, runAndExit, userArguments } from "./workspace.mjs";

const args = userArguments();
const all = args.join(" ") === "--all";
if (args.length > 0 && !all) {
  ensureInstalled();
  runAndExit("node_modules/vitest/vitest.mjs", ["run", ...args]);
} else {
  console.log(
    all
      ? "Runs all tests that this machine has the backends for: up to half an hour on two cores, less where nothing has changed."
      : "Runs the tests that need nothing but Node: two to four minutes on two cores. To run everything: npm run test:all",
  );
  await runPackages();
}

async function runPackages() {
  const { status, tasks, backends } = await runTasks(["test", "test:conformance"], {
    turboArguments: ["--continue", "--output-logs=errors-only", "--log-order=grouped"],
    env: all ? {} : { FENCED_WITHOUT: "all,!node,!typescript" },
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
