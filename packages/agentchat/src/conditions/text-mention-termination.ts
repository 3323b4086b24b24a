import { type Component, type ComponentModel, defineComponent, extractCodeBlocks } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import * as z from "zod";
import { withoutThoughts } from "../common/without-thoughts.ts";
import { isProgramming } from "../execution/runnable-code.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { isChatMessage } from "../messages/message-guards.ts";
import { messageToText } from "../messages/message-to-text.ts";
import { BaseTerminationCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({
  text: z.string().min(1, "must not be empty: name the text that ends the chat, e.g. TERMINATE"),
  sources: z.array(z.string()).optional(),
  unlessCode: z.boolean().optional(),
});

/** Which mentions count. */
export interface TextMentionTerminationOptions {
  /** Names of the agents whose messages count. Default: everyone's, including the task's. */
  readonly sources?: readonly string[] | undefined;
  /**
   * A message that contains code to run does not end the chat even if it mentions the text: the code runs first. Code
   * is a closed fence that names a programming language. Default: false.
   */
  readonly unlessCode?: boolean | undefined;
}

/** Ends the chat when a message contains a text, such as `TERMINATE`. Case-sensitive. */
export class TextMentionTermination extends BaseTerminationCondition {
  /** How `loadComponent` creates it. */
  static readonly component: Component<TextMentionTermination> = defineComponent({
    provider: "@fenced/agentchat:TextMentionTermination",
    componentType: "termination",
    schema: configSchema,
    load: ({ text, ...options }) => new TextMentionTermination(text, options),
  });

  readonly #text: string;
  readonly #options: TextMentionTerminationOptions;

  /** @throws InvalidInputError if `text` is empty, or an option is unknown or wrong. */
  constructor(text: string, options: TextMentionTerminationOptions = {}) {
    super();
    const { text: checkedText, ...checked } = checkOptions(
      configSchema,
      { ...options, text },
      "TextMentionTermination",
    );
    this.#text = checkedText;
    this.#options = checked;
  }

  override dumpComponent(): ComponentModel {
    return TextMentionTermination.component.dump({ text: this.#text, ...this.#options });
  }

  protected override findReason(messages: readonly AgentMessage[]): string | undefined {
    const found = messages.find((message) => isChatMessage(message) && this.#ends(message));
    return found && `"${found.source}" mentioned "${this.#text}".`;
  }

  #ends(message: AgentMessage): boolean {
    const { sources, unlessCode = false } = this.#options;
    if (sources !== undefined && !sources.includes(message.source)) return false;
    const text = withoutThoughts(messageToText(message));
    if (!text.includes(this.#text)) return false;
    return !unlessCode || !extractCodeBlocks(text).some(({ language }) => isProgramming(language));
  }
}
