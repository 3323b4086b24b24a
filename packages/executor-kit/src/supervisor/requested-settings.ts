import type { BaseExecutorOptions, CommandLineExecutorOptions } from "../base-executor-options.ts";
import type { CommandLineRequest, StatefulExecutorOptions } from "../forkable-code-executor.ts";
import type { SupervisedSettings } from "./supervised-backend.ts";
import type { WarmOptions } from "./warm/interpreter-options.ts";

/** The options of an executor that a supervised session needs. */
export interface SupervisedOptions
  extends
    Pick<BaseExecutorOptions, "env">,
    Pick<CommandLineExecutorOptions, "cleanupTempFiles">,
    Pick<StatefulExecutorOptions, "stateful"> {
  readonly warm?: false | WarmOptions | undefined;
}

/** The settings of a session that do not depend on its backend. */
export type RequestedSettings = Omit<SupervisedSettings, "wrap" | "network" | "memorySentence">;

/** Returns the settings of a session that its executor's options decide; the backend adds those of its places. */
export function requestedSettings({
  id,
  options,
  functions,
}: CommandLineRequest<SupervisedOptions>): RequestedSettings {
  const { env = {}, cleanupTempFiles = true, warm, stateful = false } = options;
  return { id, env, keepFiles: !cleanupTempFiles, functions, warm, stateful, installsApart: true };
}
