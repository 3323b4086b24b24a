import type { JsonObject } from "../json-value.ts";

/** A component (an executor, an agent, a team, a condition, ...) and its settings, as plain JSON. */
export interface ComponentModel {
  /** The package and its export, e.g. `"@fenced/executor-docker:DockerCommandLineCodeExecutor"`. */
  readonly provider: string;
  /** The kind of component, e.g. `"code_executor"`, `"agent"`, `"team"`, `"model"`, `"termination"`. */
  readonly componentType: string;
  /** The version of the config's schema: a whole number, starting at 1. */
  readonly version: number;
  /** The settings, as the provider's schema describes them. */
  readonly config: JsonObject;
  /** A short display name. */
  readonly label?: string;
  /** What the component is for. */
  readonly description?: string;
}
