import type { JsonObject } from "../json-value.ts";

/** A component (an executor, an agent, a team, a condition, ...) and its settings, as plain JSON. */
export interface ComponentModel {
  /** The package and its export, e.g. `"@fenced/executor-docker:DockerCommandLineCodeExecutor"`. */
  readonly provider: string;
  /** The kind of component, e.g. `"code_executor"`, `"agent"`, `"team"`, `"model"`, `"termination"`. */
  readonly componentType: string;
  /** The version of `config`'s shape: a whole number, from 1. */
  readonly version: number;
  /** The settings, in the shape that the provider's own schema describes. */
  readonly config: JsonObject;
  /** A short name for people. */
  readonly label?: string;
  /** What it is for. */
  readonly description?: string;
}
