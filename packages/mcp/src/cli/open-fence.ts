import type { CodeExecutor, ComponentModel } from "@fenced/core";
import type { OpenExecutorOptions } from "@fenced/executor-auto";
import * as z from "zod";
import { fenceSettings } from "./executor-model.ts";
import type { CliOptions } from "./parse-options.ts";

/** The strongest fence of this machine. */
export interface StrongestFence {
  /** A started executor behind it. */
  readonly executor: CodeExecutor;
  /** The model to create more of them. */
  readonly model: ComponentModel;
  /** Where the code runs, and why not behind a stronger one. */
  readonly reason: string;
}

/**
 * Opens the strongest fence. Does not download a missing image, because MCP hosts wait at most a minute for a server.
 *
 * @throws FencedError if there is none, or a setting is wrong; the signal's reason if it is aborted.
 */
export async function openStrongestFence(options: CliOptions, signal: AbortSignal): Promise<StrongestFence> {
  const { openExecutor } = await import("@fenced/executor-auto");
  // openExecutor validates them.
  const settings = z.custom<OpenExecutorOptions>().parse(fenceSettings(options));
  const executor = await openExecutor("auto", { pull: "never", ...settings, signal });
  return { executor, model: executor.dumpComponent(), reason: executor.fence.reason };
}
