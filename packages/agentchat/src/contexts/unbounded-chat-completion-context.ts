import { type Component, type ComponentModel, defineComponent, type ModelMessage } from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import * as z from "zod";
import {
  BaseChatCompletionContext,
  type ChatCompletionContextOptions,
  initialMessagesSchema,
} from "./chat-completion-context.ts";

const configSchema = z.strictObject({ initialMessages: initialMessagesSchema.optional() });

/** Gives the model everything. The default of agents. */
export class UnboundedChatCompletionContext extends BaseChatCompletionContext {
  /** How `loadComponent` creates it. */
  static readonly component: Component<UnboundedChatCompletionContext> = defineComponent({
    provider: "@fenced/agentchat:UnboundedChatCompletionContext",
    componentType: "chat_completion_context",
    schema: configSchema,
    load: (config) => new UnboundedChatCompletionContext(config),
  });

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: ChatCompletionContextOptions = {}) {
    super(checkOptions(configSchema, options, "UnboundedChatCompletionContext"));
  }

  override dumpComponent(): ComponentModel {
    const settings = { initialMessages: this.initialMessages };
    return UnboundedChatCompletionContext.component.dump(settings);
  }

  protected override select(messages: readonly ModelMessage[]): ModelMessage[] {
    return [...messages];
  }
}
