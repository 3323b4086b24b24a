import type { ChatCompletionClient } from "@fenced/core";
import {
  callbackOption,
  modelClientOption,
  optionsSchema,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import * as z from "zod";
import { type ChatCompletionContext, contextOption } from "../contexts/chat-completion-context.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { type GroupChatOptions, groupChatOptions } from "./group-chat-options.ts";

/** Chooses the next speaker by name; `undefined` leaves the choice to the model. */
export type SelectorFunc = (
  history: readonly AgentMessage[],
) => string | null | undefined | Promise<string | null | undefined>;

/** Returns the names that the model chooses from; at least one. */
export type CandidateFunc = (history: readonly AgentMessage[]) => readonly string[] | Promise<readonly string[]>;

/** Options of a `SelectorGroupChat`. */
export interface SelectorGroupChatOptions extends GroupChatOptions {
  /** The model that chooses the next speaker. */
  readonly modelClient: ChatCompletionClient;
  /**
   * The prompt for the model, with the placeholders `{roles}` (names and descriptions), `{participants}` (names to choose
   * from) and `{history}` (the conversation). Default: a general prompt.
   */
  readonly selectorPrompt?: string | undefined;
  /** Allow the same participant to speak twice in a row. Default: false. */
  readonly allowRepeatedSpeaker?: boolean | undefined;
  /**
   * How often to ask the model until it names one valid participant. After that, the last speaker continues if they may
   * speak again, otherwise the first candidate speaks. Default: 3.
   */
  readonly maxSelectorAttempts?: number | undefined;
  /** Called before the model. Default: the model always chooses. */
  readonly selectorFunc?: SelectorFunc | undefined;
  /** Replaces `allowRepeatedSpeaker`. Default: all, or all but the last speaker. */
  readonly candidateFunc?: CandidateFunc | undefined;
  /** With `emitTeamEvents`: yield the model's text as it is generated, before the complete `SelectorEvent`. Default: false. */
  readonly modelClientStream?: boolean | undefined;
  /** Which messages the model sees as `{history}`. Default: all. */
  readonly modelContext?: ChatCompletionContext | undefined;
}

/** Checks the options. */
export const selectorGroupChatOptions: z.ZodType<SelectorGroupChatOptions> = optionsSchema({
  ...groupChatOptions,
  modelClient: modelClientOption,
  selectorPrompt: z.string().min(1).exactOptional(),
  allowRepeatedSpeaker: z.boolean().exactOptional(),
  maxSelectorAttempts: wholeNumberOption({ from: 1 }).exactOptional(),
  selectorFunc: callbackOption<SelectorFunc>().exactOptional(),
  candidateFunc: callbackOption<CandidateFunc>().exactOptional(),
  modelClientStream: z.boolean().exactOptional(),
  modelContext: contextOption.exactOptional(),
} satisfies OptionSchemas<SelectorGroupChatOptions>);
