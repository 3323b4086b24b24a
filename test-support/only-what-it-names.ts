/**
 * Before each test: one that names no backend, or only Node and TypeScript, runs as on a machine with Node alone, wherever it runs.
 * So a test that needs a program without naming it with `needs` fails here and not on a newcomer's machine, and nothing has to run twice.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeEach, expect, inject, type RunnerTask } from "vitest";
import { variablesOfNodeAlone } from "./node-alone.mjs";

type Variables = Readonly<Record<string, string | undefined>>;

declare global {
  /** What this process was started with. Test files share it. */
  var fencedVariables: Variables | undefined;
}

const nodeAlone: Variables = { ...variablesOfNodeAlone, PATH: inject("pathOfNodeAlone") };
const everything: Variables = (globalThis.fencedVariables ??= Object.fromEntries(
  Object.keys(nodeAlone).map((name) => [name, process.env[name]]),
));
/** How many tests of each kind are running. */
const running = { nodeAlone: 0, everything: 0 };

// What a file does outside its tests needs no more than these do.
const { testPath = "" } = expect.getState();
const ofFile = readFileSync(testPath, "utf8").includes("needs(") ? everything : nodeAlone;
set(ofFile);
afterAll(() => set(everything));

beforeEach(({ task }) => {
  const kind = isForNodeAlone(task) ? "nodeAlone" : "everything";
  if (running[kind === "everything" ? "nodeAlone" : "everything"] > 0) {
    throw new Error("Tests that need nothing run at the same time as tests that do: put them into files of their own.");
  }
  running[kind] += 1;
  set(kind === "everything" ? everything : nodeAlone);
  return () => {
    running[kind] -= 1;
    if (running[kind] === 0) set(ofFile);
  };
});

function isForNodeAlone({ meta, suite }: Pick<RunnerTask, "meta" | "suite">): boolean {
  const named = meta.backends ?? [];
  return (
    named.every((name) => name === "node" || name === "typescript") && (suite === undefined || isForNodeAlone(suite))
  );
}

function set(variables: Variables): void {
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined) Reflect.deleteProperty(process.env, name);
    else process.env[name] = value;
  }
}
