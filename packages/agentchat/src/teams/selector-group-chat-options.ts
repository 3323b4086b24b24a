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

/** Chooses the names among which the model chooses; at least one. */
export type CandidateFunc = (history: readonly AgentMessage[]) => readonly string[] | Promise<readonly string[]>;

/** What a `SelectorGroupChat` is made from. */
export interface SelectorGroupChatOptions extends GroupChatOptions {
  /** The model that chooses. Stays the caller's. */
  readonly modelClient: ChatCompletionClient;
  /**
   * What the model is asked. `{roles}` becomes the names and descriptions, `{participants}` the names to choose from, and
   * `{history}` what was said. Default: a general text.
   */
  readonly selectorPrompt?: string | undefined;
  /** Whether the same participant may speak twice in a row. Default: false. */
  readonly allowRepeatedSpeaker?: boolean | undefined;
  /**
   * How often the model is asked until it names one valid participant. Then the last speaker goes on, or, at the start, the
   * first candidate begins. Default: 3.
   */
  readonly maxSelectorAttempts?: number | undefined;
  /** Goes before the model. Default: the model always chooses. */
  readonly selectorFunc?: SelectorFunc | undefined;
  /** Replaces `allowRepeatedSpeaker`. Default: all, or all but the last speaker. */
  readonly candidateFunc?: CandidateFunc | undefined;
  /** With `emitTeamEvents`: yield the model's text as it comes, before the `SelectorEvent` with all of it. Default: false. */
  readonly modelClientStream?: boolean | undefined;
  /** What of the chat the model sees as `{history}`. Default: everything. */
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
