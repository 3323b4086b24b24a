import type { CheckpointStore, CodeExecutor, RestoreOption } from "@fenced/core";
import {
  callbackOption,
  objectOption,
  optionsSchema,
  type OptionSchemas,
  wholeNumberOption,
} from "@fenced/core/options";
import type * as z from "zod";

/** The sandbox that an executor is created for. */
export interface SandboxRequest {
  /** Names the sandbox, as the framework does: a container or a work directory can be named after it. */
  readonly id: string;
  /** Pass it on as the executor's option `restore`: a snapshot whose files the sandbox begins with. Absent for an empty one. */
  readonly restore?: RestoreOption;
  /**
   * What the framework's user asked for, in the framework's words: `workspace` and `policy` of TanStack AI, `image`, `templateId`
   * and so on of ComputeSDK. It has the effect that you give it.
   */
  readonly given: Readonly<Record<string, unknown>>;
  /** Aborted if the framework no longer wants the sandbox. */
  readonly signal?: AbortSignal;
}

/** How an adapter comes by its sandboxes; each is an executor that can start programs (`capabilities.processes`). */
export interface ExecutorSandboxesOptions {
  /** Creates the executor of a new sandbox. It is started, and stopped at the sandbox's end. */
  readonly createExecutor: (request: SandboxRequest) => CodeExecutor | Promise<CodeExecutor>;
  /**
   * Finds the executor of a sandbox that an earlier program has made, for example with `connectExecutor`; returns
   * `undefined` if there is none. Default: only sandboxes of this program are found again.
   */
  readonly resumeExecutor?:
    | ((request: Pick<SandboxRequest, "id" | "signal">) => CodeExecutor | undefined | Promise<CodeExecutor | undefined>)
    | undefined;
  /** Where snapshots of files are kept. `createExecutor` must then pass `restore` on. Default: there are no snapshots. */
  readonly snapshots?: CheckpointStore | undefined;
  /** Maximum bytes to keep of each output of a command that is awaited; the middle of a longer one is left out. Default: 1,048,576. */
  readonly maxOutputBytes?: number | undefined;
}

export const executorSandboxesOptions: z.ZodType<ExecutorSandboxesOptions> = optionsSchema({
  createExecutor: callbackOption<ExecutorSandboxesOptions["createExecutor"]>(),
  resumeExecutor: callbackOption<NonNullable<ExecutorSandboxesOptions["resumeExecutor"]>>().exactOptional(),
  snapshots: objectOption<CheckpointStore>(["begin", "open"], "a store of @fenced/checkpoints").exactOptional(),
  maxOutputBytes: wholeNumberOption({ from: 0, unit: "bytes" }).exactOptional(),
} satisfies OptionSchemas<ExecutorSandboxesOptions>);
