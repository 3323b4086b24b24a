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

/** Options of `codeExecutionTool`; all are optional. */
export interface CodeExecutionToolOptions extends ModelOutputLimits {
  /** Tells the model what the tool does. Default: generated from the executor's capabilities and functions. */
  readonly description?: string | undefined;
  /** Languages to offer. Default: all of the executor's. */
  readonly languages?: readonly string[] | undefined;
  /** Time limit of a call in milliseconds; `Infinity` for no limit. Default: the executor's, which is 60,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * Tools that the code can call as functions (code mode). They receive the model's messages and the context of the
   * call that runs the code; their signatures are added to the description. Each needs an `execute`, the executor needs
   * `capabilities.hostFunctions`, and a tool with `needsApproval` needs `approveHostCall`. Default: none.
   */
  readonly tools?: Readonly<Record<string, AiSdkTool>> | undefined;
  /**
   * Decides about each call of one of `tools` while the code waits and its time limit keeps running;
   * `call.needsApproval` is the result of the tool's own `needsApproval`. The AI SDK's own approval requests do not
   * work here: they end the response, and running code cannot wait for the next one. Preliminary results list waiting
   * calls as `waitingCalls`. Default: all calls are approved.
   */
  readonly approveHostCall?: ApproveHostCall | undefined;
  /**
   * Whether a person must approve a call before it runs: for all calls, or depending on the code. Like the AI SDK's
   * `needsApproval`: the call returns a `tool-approval-request`, and runs once the messages contain the
   * `tool-approval-response`. Default: false.
   */
  readonly needsApproval?: Exclude<Tool<CodeBlock, CodeExecutionOutput>["needsApproval"], undefined> | undefined;
  /**
   * Pass the images that the code shows to the model. If false, the model is only told how many there are. The result
   * contains them either way. Turn this off for providers that convert tool results to text, such as those that use
   * OpenAI's chat completions protocol: they would send the base64. Default: true.
   */
  readonly imagesToModel?: boolean | undefined;
  /** Minimum interval between two preliminary results in milliseconds. Default: 250. */
  readonly progressIntervalMs?: number | undefined;
  /** Maximum characters of output in a preliminary result, which keeps the last ones. Default: 4,000. */
  readonly maxProgressCharacters?: number | undefined;
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
  // Node treats a delay longer than a timer supports as 1 ms.
  progressIntervalMs: wholeNumberOption({ from: 0, to: 2_147_483_647, unit: "milliseconds" }).exactOptional(),
  maxProgressCharacters: wholeNumberOption({ from: 0, unit: "characters" }).exactOptional(),
};
