import {
  type ComponentContext,
  type ComponentModel,
  extractCodeBlocks,
  InvalidInputError,
  type JsonObject,
  parseComponentConfig,
} from "@fenced/core";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { isChatMessage } from "../messages/message-guards.ts";
import { messageToText } from "../messages/message-to-text.ts";
import { BaseTerminationCondition, dumpCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({
  text: z.string(),
  sources: z.array(z.string()).optional(),
  unlessCode: z.boolean().optional(),
});

/** Whose mention counts, and when. */
export interface TextMentionTerminationOptions {
  /** Names of the agents whose messages count. Default: everyone's, the task's too. */
  readonly sources?: readonly string[] | undefined;
  /**
   * A message that still holds code to run does not end the chat, even if it mentions the text: the code runs first.
   * Code is a closed fence that names a programming language. Default: false.
   */
  readonly unlessCode?: boolean | undefined;
}

// What is shown rather than run. Only the executor knows what it can run, and a condition does not know the executor.
const shownNotRun: ReadonlySet<string> = new Set(
  "text txt plaintext plain output console json jsonc json5 yaml yml toml xml html css csv tsv markdown md diff mermaid".split(
    " ",
  ),
);

/** Ends the chat when a message holds a text, such as `TERMINATE`. Case counts. */
export class TextMentionTermination extends BaseTerminationCondition {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "termination";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly #text: string;
  readonly #options: TextMentionTerminationOptions;

  /** @throws InvalidInputError if `text` is empty. */
  constructor(text: string, options: TextMentionTerminationOptions = {}) {
    super();
    if (text === "") {
      throw new InvalidInputError("TextMentionTermination looks for an empty text", {
        remedy: "Name the text that should end the chat, e.g. TERMINATE.",
      });
    }
    this.#text = text;
    this.#options = options;
  }

  /** Makes what `dumpComponent` described. */
  static fromConfig(config: JsonObject, context: ComponentContext): TextMentionTermination {
    const { text, ...options } = parseComponentConfig(configSchema, config, context.provider);
    return new TextMentionTermination(text, options);
  }

  override dumpComponent(): ComponentModel {
    return dumpCondition("TextMentionTermination", { text: this.#text, ...this.#options });
  }

  protected override findReason(messages: readonly AgentMessage[]): string | undefined {
    const found = messages.find((message) => isChatMessage(message) && this.#ends(message));
    return found && `"${found.source}" mentioned "${this.#text}".`;
  }

  #ends(message: AgentMessage): boolean {
    const { sources, unlessCode = false } = this.#options;
    if (sources !== undefined && !sources.includes(message.source)) return false;
    const text = messageToText(message);
    return text.includes(this.#text) && !(unlessCode && holdsCode(text));
  }
}

function holdsCode(text: string): boolean {
  return extractCodeBlocks(text).some(({ language }) => language !== "" && !shownNotRun.has(language.toLowerCase()));
}
