import { type CodeExecutor, FencedError } from "@fenced/core";
import type { OpenExecutorOptions } from "@fenced/executor-auto";
import * as z from "zod";
import { fenceSettings } from "./executor-model.ts";
import type { CliOptions } from "./parse-options.ts";

/** The strongest fence of this machine. */
export interface StrongestFence {
  /** A started executor behind it. */
  readonly executor: CodeExecutor;
  /** Opens the same fence once more. */
  readonly create: (signal: AbortSignal) => Promise<CodeExecutor>;
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
  const { name, reason, passedOver } = executor.fence;
  // Only a container takes options for containers.
  const { image, docker, pull = "never", pullTimeoutMs, ...common } = settings;
  const ofContainer = {
    pull,
    ...(image === undefined ? {} : { image }),
    ...(docker === undefined ? {} : { docker }),
    ...(pullTimeoutMs === undefined ? {} : { pullTimeoutMs }),
  };
  const lacksImage = passedOver.some(({ error }) => FencedError.isInstance(error) && error.option === "pull");
  return {
    executor,
    create: (start) => openExecutor(name, { ...common, ...(name === "docker" ? ofContainer : {}), signal: start }),
    reason: lacksImage ? `${reason} To use Docker, run \`docker pull ${image ?? "python:3-slim"}\` once.` : reason,
  };
}
