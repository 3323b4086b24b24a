import type { CodeExecutor, ComponentModel } from "@fenced/core";
import type { OpenExecutorOptions } from "@fenced/executor-auto";
import * as z from "zod";
import { fenceSettings } from "./executor-model.ts";
import type { CliOptions } from "./parse-options.ts";

/** The strongest fence of this machine. */
export interface StrongestFence {
  /** A started executor behind it. */
  readonly executor: CodeExecutor;
  /** What makes more of them. */
  readonly model: ComponentModel;
  /** Where the code runs, and why not behind a stronger one. */
  readonly reason: string;
}

/**
 * Opens the strongest fence. An image that is missing is not downloaded: hosts wait for a server no longer than a minute.
 *
 * @throws FencedError if there is none, or a setting is wrong; the signal's reason if that is aborted.
 */
export async function openStrongestFence(options: CliOptions, signal: AbortSignal): Promise<StrongestFence> {
  const { openExecutor } = await import("@fenced/executor-auto");
  // It checks them itself.
  const settings = z.custom<OpenExecutorOptions>().parse(fenceSettings(options));
  const executor = await openExecutor("auto", { pull: "never", ...settings, signal });
  return { executor, model: executor.dumpComponent(), reason: executor.fence.reason };
}
