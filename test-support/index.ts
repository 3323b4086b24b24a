import { inject } from "vitest";
import type { BackendName, Backends, BackendStatus } from "./backends.ts";

export {
  jupyterImage,
  jupyterPythons,
  testKubeconfig,
  type BackendName,
  type Backends,
  type BackendStatus,
} from "./backends.ts";

declare module "vitest" {
  interface ProvidedContext {
    backends: Backends;
    /** The `PATH` of a machine with Node alone. */
    pathOfNodeAlone: string;
  }
  interface TaskMeta {
    /** The backends that the test needs, for the reporter's counts. */
    backends?: readonly BackendName[];
  }
}

/** Whether this machine has a backend, and which version of it. Detected once per run, not once per test file. */
export function backend(name: BackendName): BackendStatus {
  return inject("backends")[name];
}

/** `npm test` must not take longer than a newcomer waits. */
const isQuick = process.env.FENCED_SUITE === "quick";

/** Groups of the conformance suite that the version of Node can affect: they start, read and end processes. */
const processGroups = [
  "standard input",
  "stream",
  "stream that nobody reads",
  "timeout",
  "abort",
  "background processes",
  "processes",
  "leaks",
];

/**
 * How to run the conformance suite on the executor that shows what the base class in the kit does: completely. Under other versions
 * of Node, when `FENCED_SUITE` is `processes`, one or two cases of each group about processes.
 */
export function everyCase(): Suite {
  if (process.env.FENCED_SUITE !== "processes") return { concurrent: true };
  return { concurrent: true, groups: processGroups, cases: "smoke" };
}

/**
 * How to run the conformance suite on the main executor of any other place: all cases that the place can fail. Completely when
 * `FENCED_SUITE` is `full`, as in `.ci/full`; one or two cases of each group when it is `quick`, as in `npm test`.
 */
export function place(): Suite {
  if (process.env.FENCED_SUITE === "full") return { concurrent: true };
  return { ...everyCase(), cases: isQuick ? "smoke" : "place" };
}

/**
 * How to run the conformance suite on the main executor of a place that only connects to the supervisor of the kit, which
 * `executor-local` shows in its sandbox: all cases that the way there and the place can fail. Otherwise as `place()`.
 */
export function connection(): Suite {
  const suite = place();
  return suite.cases === "place" ? { ...suite, cases: "connection" } : suite;
}

/**
 * How to run the conformance suite on a variant of an executor that passes all of it elsewhere: the groups that the variant can
 * affect, without what no place decides. Completely when `FENCED_SUITE` is `full`; when it is `processes`, only those of the
 * groups that are about processes.
 */
export function variant(...groups: readonly string[]): Suite {
  if (process.env.FENCED_SUITE === "full") return { concurrent: true };
  const about = groups.filter((name) => process.env.FENCED_SUITE !== "processes" || processGroups.includes(name));
  return { concurrent: true, groups: about, cases: isQuick ? "smoke" : "place" };
}

/**
 * How to run the conformance suite on a mechanism of the kit, such as warm or stateful Python, in a place: the mechanism is tested
 * in these groups on this host, and in the place in one or two cases of each. Completely when `FENCED_SUITE` is `full`.
 */
export function mechanism(...groups: readonly string[]): Suite {
  const suite = variant(...groups);
  return suite.groups === undefined ? suite : { ...suite, cases: "smoke" };
}

/** Options of `testCodeExecutor`. */
interface Suite {
  readonly concurrent: true;
  readonly groups?: readonly string[];
  readonly cases?: "place" | "connection" | "smoke";
}

/**
 * Options for `describe` and `it`: skips tests that take long and that few changes can break, unless `FENCED_SUITE` is `full`,
 * as in `.ci/full`.
 */
export const nightly: { readonly skip?: true } = process.env.FENCED_SUITE === "full" ? {} : { skip: true };

/** Options for `describe` and `it`: skips tests that take long on a machine with Node alone, in `npm test`, which leaves them to CI. */
export const slow: { readonly skip?: true } = isQuick ? { skip: true } : {};

/** Options for `describe` and `it`: skips the tests if a backend is missing, and informs the reporter. */
export function needs(...names: BackendName[]): { skip?: true; meta: { backends: BackendName[] } } {
  // Not `skip: false`: on a group, Vitest would then also run tests in it that are skipped individually.
  const skipped = names.some((name) => !backend(name).available);
  return { ...(skipped && { skip: true }), meta: { backends: names } };
}
