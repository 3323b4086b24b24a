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
  }
  interface TaskMeta {
    /** The backends that the test needs; the reporter counts by it. */
    backends?: readonly BackendName[];
  }
}

/** Whether this machine has a backend, and which version of it. Detected once per run, not once per test file. */
export function backend(name: BackendName): BackendStatus {
  return inject("backends")[name];
}

/** Groups of the conformance suite that a version of Node can change: what starts, reads and ends processes. */
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
 * How the conformance suite is run on the executor of a kind of place: whole. Under other versions of Node, where `FENCED_SUITE`
 * is `processes`, in the groups about processes.
 */
export function place(): Suite {
  return process.env.FENCED_SUITE === "processes" ? { concurrent: true, groups: processGroups } : { concurrent: true };
}

/**
 * How the conformance suite is run on a variant of an executor that passes all of it elsewhere: in the groups that the variant can
 * change. Whole where `FENCED_SUITE` is `full`, as in `.ci/full`; where it is `processes`, in those of the groups that are about
 * processes.
 */
export function variant(...groups: readonly string[]): Suite {
  if (process.env.FENCED_SUITE === "full") return { concurrent: true };
  const about = groups.filter((name) => process.env.FENCED_SUITE !== "processes" || processGroups.includes(name));
  return { concurrent: true, groups: about };
}

/** Options of `testCodeExecutor`. */
interface Suite {
  readonly concurrent: true;
  readonly groups?: readonly string[];
}

/** Options for `describe` and `it`: skips the tests where a backend is missing, and tells the reporter about it. */
export function needs(...names: BackendName[]): { skip?: true; meta: { backends: BackendName[] } } {
  // Not `skip: false`: on a group, Vitest lets that run even the tests in it that are skipped by themselves.
  const skipped = names.some((name) => !backend(name).available);
  return { ...(skipped && { skip: true }), meta: { backends: names } };
}
