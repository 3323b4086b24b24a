import {
  type ApproveHostCall,
  FunctionWithRequirements,
  type HostFunction,
  isPythonIdentifier,
  type RestoreOption,
  type RunRecorder,
} from "@fenced/core";
import {
  callbackOption,
  environmentOption,
  hostFunctionOption,
  objectOption,
  recordOption,
  timeLimitOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import { z } from "zod";
import { restoreOption } from "./checkpoints/checkpoint-options.ts";
import type { LanguageCommand } from "./languages/command-languages.ts";

/** Options of every executor; each executor's own options extend them. */
export interface BaseExecutorOptions {
  /** Time limit for each block in milliseconds. `Infinity`: no limit. Default: 60,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * Time limit for a whole call in milliseconds, including the wait for its turn and for the start. When it expires,
   * whatever is running is killed and the call resolves with the results so far. `Infinity`: no limit. Default: no
   * limit.
   */
  readonly totalTimeoutMs?: number | undefined;
  /**
   * Bytes of output that a result keeps, for both streams together. Each block keeps the head and tail of its output
   * within what earlier blocks have left. A program that prints more keeps running, and a stream carries everything.
   * Default: 1,048,576.
   */
  readonly maxOutputBytes?: number | undefined;
  /**
   * Called as soon as the executor notices that the session's state from earlier calls is gone (the container was
   * killed, the kernel died, the connection broke), even while nothing runs. The next result also has
   * `stateLost: true`. Errors that it throws are ignored. Not part of a dumped component.
   *
   * @param reason - a sentence that says what happened, for a log or a person.
   */
  readonly onSessionLost?: ((reason: string) => void) | undefined;
  /**
   * Limit on the disk space of the workspace's files in bytes. A block that exceeds it is ended with exit code 153 and
   * a sentence on standard error, possibly a moment later, since the workspace is measured several times a second.
   * Files outside the workspace do not count. The start fails if the workspace cannot be measured. Default: no limit.
   */
  readonly maxWorkspaceBytes?: number | undefined;
  /** Environment variables of the blocks. Default: none. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /**
   * Functions that blocks can import: those whose source is copied to the code (`FunctionWithRequirements`), and those
   * that run in this program when the code calls them (`hostFunction`), in the languages of
   * `capabilities.hostFunctions`. Default: none.
   */
  readonly functions?: readonly (FunctionWithRequirements | HostFunction)[] | undefined;
  /**
   * Asked before each call of a host function, while the program waits and its time limit keeps running. Not part of a
   * dumped component. Default: all calls are approved.
   */
  readonly approveHostCall?: ApproveHostCall | undefined;
  /** Maximum number of host function calls per block; further calls fail with an exception. Default: 256. */
  readonly maxHostCalls?: number | undefined;
  /** The name of the module from which blocks import the functions: an identifier. Default: `functions`. */
  readonly functionsModule?: string | undefined;
  /**
   * Start with the files of a checkpoint, and with its variables if it has some and the executor is stateful;
   * `executor.restored` then says what came back. They replace files of the same names that are there. A later start
   * restores them again if the workspace is empty. Not part of a dumped component. Default: nothing.
   */
  readonly restore?: RestoreOption | undefined;
  /**
   * Say in each result which files of the workspace the run created, changed and deleted, and which of these others may run
   * later (`result.changes`). The workspace is listed before and after each run, and a run waits up to 100 ms if a file has
   * just been changed, 2.1 s on file systems that count whole seconds. The start fails if the executor cannot know. A
   * submitted run then ends with its program, even with `keepAliveMs`. Default: only in a `workDir` of at most 1,000
   * files, directories and links, where runs wait at most 20 ms, and `result.changes` is otherwise `truncated`; and for
   * submitted runs that go on without their program, not at all.
   */
  readonly changes?: boolean | undefined;
  /**
   * Keeps what each run did: `recordFile(path)`. Implies `changes`, but where the executor cannot know them, the record does
   * not have them. A run whose record cannot be opened rejects before its code starts. Not part of a dumped component.
   * Default: nothing is recorded.
   */
  readonly record?: RunRecorder | undefined;
}

/** A function of either kind or, in a component's config, the output of its `toJSON`. */
const functionOption: z.ZodType<FunctionWithRequirements | HostFunction> = z.union(
  [
    hostFunctionOption,
    objectOption<FunctionWithRequirements>(["toJSON"], "a FunctionWithRequirements"),
    z.record(z.string(), z.json()).transform((json) => FunctionWithRequirements.fromJSON(json)),
  ],
  "must be a FunctionWithRequirements or a host function: create one with fromString(), fromCallable() or hostFunction()",
);

/**
 * The schemas of the options common to all executors, to include in an executor's own schema.
 *
 * @example
 * export const myExecutorOptions: z.ZodType<MyExecutorOptions> = optionsSchema({
 *   ...baseExecutorConfig,
 *   host: z.string(),
 * } satisfies OptionSchemas<MyExecutorOptions>);
 */
export const baseExecutorConfig: OptionSchemas<BaseExecutorOptions> = {
  timeoutMs: timeLimitOption.exactOptional(),
  totalTimeoutMs: timeLimitOption.exactOptional(),
  maxWorkspaceBytes: wholeNumberOption({ from: 0, unit: "bytes" }).exactOptional(),
  onSessionLost: callbackOption<(reason: string) => void>().exactOptional(),
  maxOutputBytes: wholeNumberOption({ from: 0, unit: "bytes" }).exactOptional(),
  env: environmentOption.exactOptional(),
  functions: z.array(functionOption).exactOptional(),
  functionsModule: z
    .string()
    .refine(isPythonIdentifier, 'must be a Python identifier that is not a keyword, such as "functions"')
    .exactOptional(),
  approveHostCall: callbackOption<ApproveHostCall>().exactOptional(),
  maxHostCalls: wholeNumberOption({ from: 0 }).exactOptional(),
  restore: restoreOption.exactOptional(),
  changes: z.boolean().exactOptional(),
  record: recordOption.exactOptional(),
};

/** What the base class validates, whatever options the executor adds. */
export const baseOptions: z.ZodType<BaseExecutorOptions> = z.looseObject(baseExecutorConfig);

/** Additional options of command-line executors. */
export interface CommandLineExecutorOptions {
  /**
   * Languages to add, or to run with another command: `{ ruby: { extension: "rb", command: ["ruby"] } }`. Default: only
   * the languages that the executor runs by default.
   */
  readonly languages?: Readonly<Record<string, LanguageCommand>> | undefined;
  /** Remove the files that blocks without a file name are written to. Default: true. */
  readonly cleanupTempFiles?: boolean | undefined;
}

/** The schemas of the additional options of command-line executors. */
export const commandLineExecutorConfig: OptionSchemas<CommandLineExecutorOptions> = {
  languages: z
    .record(z.string(), z.strictObject({ extension: z.string(), command: z.array(z.string()) }))
    .exactOptional(),
  cleanupTempFiles: z.boolean().exactOptional(),
};
