import type { AiSdkTool, ApproveHostCall, CodeBlock, ModelOutputLimits } from "@fenced/core";
import {
  callbackOption,
  modelOutputLimits,
  timeLimitOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import type { Tool } from "ai";
import * as z from "zod";
import type { CodeExecutionOutput } from "./code-execution-output.ts";

/** How an executor is offered as a tool; nothing is required. */
export interface CodeExecutionToolOptions extends ModelOutputLimits {
  /** Tells the model what the tool does. Default: made from what the executor can do and the functions it offers. */
  readonly description?: string;
  /** Languages to offer. Default: all that the executor runs. */
  readonly languages?: readonly string[];
  /** Milliseconds that a call may take. `Infinity`: no limit. Default: the executor's own, 60,000. */
  readonly timeoutMs?: number;
  /**
   * Tools that the code can call as functions (code mode), with the model's messages and the context of the call that runs the code.
   * Their signatures are in the description. They need an `execute`, and an executor with `capabilities.hostFunctions`. A tool with
   * `needsApproval` needs `approveHostCall`. Default: none.
   */
  readonly tools?: Readonly<Record<string, AiSdkTool>>;
  /**
   * Decides about each call of one of `tools`, while the code waits and its time goes on; `call.needsApproval` is what the tool's
   * own `needsApproval` says. The AI SDK's approval requests end the response, and code that runs cannot wait for the next one.
   * Calls that wait are in the preliminary results, as `waitingCalls`. Default: all calls are approved.
   */
  readonly approveHostCall?: ApproveHostCall;
  /**
   * Whether a person must approve a call before it runs, for all calls or by its code, as the AI SDK's `needsApproval`:
   * the call comes back as a `tool-approval-request`, and runs when the messages have the `tool-approval-response`.
   * Default: false.
   */
  readonly needsApproval?: Exclude<Tool<CodeBlock, CodeExecutionOutput>["needsApproval"], undefined>;
  /**
   * Give the model the images that the code shows. False: it is told in words that there are some. The result has them
   * either way. Turn it off for providers that put tool results into text, such as those of OpenAI's chat completions
   * protocol: they would send the base64. Default: true.
   */
  readonly imagesToModel?: boolean;
  /** Milliseconds between two preliminary results, at least. Default: 250. */
  readonly progressIntervalMs?: number;
  /** Characters of output that a preliminary result has; of more, the last ones. Default: 4,000. */
  readonly maxProgressCharacters?: number;
}

type NeedsApproval = NonNullable<CodeExecutionToolOptions["needsApproval"]>;

/** The schemas of the options. */
export const toolOptions: OptionSchemas<CodeExecutionToolOptions> = {
  ...modelOutputLimits,
  description: z.string().exactOptional(),
  languages: z.array(z.string()).exactOptional(),
  timeoutMs: timeLimitOption.exactOptional(),
  needsApproval: z
    .union([z.boolean(), callbackOption<Exclude<NeedsApproval, boolean>>()], "must be true, false or a function")
    .exactOptional(),
  // hostFunctionsFrom checks them.
  tools: z.custom<Readonly<Record<string, AiSdkTool>>>().exactOptional(),
  approveHostCall: callbackOption<ApproveHostCall>().exactOptional(),
  imagesToModel: z.boolean().exactOptional(),
  // Of more milliseconds than a timer can wait, Node makes one.
  progressIntervalMs: wholeNumberOption({ from: 0, to: 2_147_483_647, unit: "milliseconds" }).exactOptional(),
  maxProgressCharacters: wholeNumberOption({ from: 0, unit: "characters" }).exactOptional(),
};
