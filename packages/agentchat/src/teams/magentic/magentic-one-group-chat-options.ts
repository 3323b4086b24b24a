import type { ChatCompletionClient } from "@fenced/core";
import { modelClientOption, optionsSchema, type OptionSchemas, wholeNumberOption } from "@fenced/core/options";
import * as z from "zod";
import { type GroupChatOptions, groupChatOptions } from "../group-chat-options.ts";

/** Options of a `MagenticOneGroupChat`. */
export interface MagenticOneGroupChatOptions extends GroupChatOptions {
  /** The model that plans, instructs and judges. */
  readonly modelClient: ChatCompletionClient;
  /** Maximum turns for a task; then the team answers with what it has. Default: 20. */
  readonly maxTurns?: number | undefined;
  /** Turns without progress, or in a loop, before the team makes a new plan; each turn with progress takes one back. Default: 3. */
  readonly maxStalls?: number | undefined;
  /** The prompt for the final answer, with the placeholder `{task}`. Default: a general prompt. */
  readonly finalAnswerPrompt?: string | undefined;
}

/** Checks the options. */
export const magenticOneGroupChatOptions: z.ZodType<MagenticOneGroupChatOptions> = optionsSchema({
  ...groupChatOptions,
  modelClient: modelClientOption,
  maxStalls: wholeNumberOption({ from: 1 }).exactOptional(),
  finalAnswerPrompt: z.string().min(1).exactOptional(),
} satisfies OptionSchemas<MagenticOneGroupChatOptions>);
