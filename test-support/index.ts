import { inject } from "vitest";
import type { BackendName, Backends, BackendStatus } from "./backends.ts";

export { jupyterImage, jupyterPythons, type BackendName, type Backends, type BackendStatus } from "./backends.ts";

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

/** Options for `describe` and `it`: skips the tests where a backend is missing, and tells the reporter about it. */
export function needs(...names: BackendName[]): { skip: boolean; meta: { backends: BackendName[] } } {
  return { skip: names.some((name) => !backend(name).available), meta: { backends: names } };
}
