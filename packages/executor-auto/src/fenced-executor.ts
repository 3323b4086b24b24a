import type { CodeExecutor } from "@fenced/core";

/**
 * What separates code from this machine, from the strongest to the weakest: a Docker or Podman container, a sandbox
 * of the operating system, an interpreter in WebAssembly.
 */
export type FenceName = "docker" | "os-sandbox" | "wasm";

/** A started executor, and the fence around its code. */
export interface FencedExecutor extends CodeExecutor {
  /** What was chosen, and why. */
  readonly fence: OpenedFence;
}

/** A fence that was opened. */
export interface OpenedFence {
  readonly name: FenceName;
  /** A sentence or two for a log or a person: where the code runs, and why not behind a stronger fence. */
  readonly reason: string;
  /** Stronger fences that could not be opened, the strongest first. Empty if you named a fence. */
  readonly passedOver: readonly PassedOverFence[];
}

/** A fence that could not be opened, or cannot do what you asked for. */
export interface PassedOverFence {
  readonly name: FenceName;
  /** What is wrong. */
  readonly problem: string;
  /** What to do if you want this fence. */
  readonly remedy: string;
  /** What was thrown: usually a `BackendUnavailableError`. */
  readonly error: unknown;
}
