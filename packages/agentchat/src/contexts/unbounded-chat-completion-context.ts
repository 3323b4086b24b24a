import {
  type ComponentContext,
  type ComponentModel,
  type JsonObject,
  type ModelMessage,
  parseComponentConfig,
} from "@fenced/core";
import * as z from "zod";
import { dumpComponentModel } from "../common/dump-component-model.ts";
import { BaseChatCompletionContext, initialMessagesSchema } from "./chat-completion-context.ts";

const configSchema = z.strictObject({ initialMessages: initialMessagesSchema });

/** Gives the model everything. The default of agents. */
export class UnboundedChatCompletionContext extends BaseChatCompletionContext {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "chat_completion_context";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  /** Makes what `dumpComponent` described. */
  static fromConfig(config: JsonObject, context: ComponentContext): UnboundedChatCompletionContext {
    return new UnboundedChatCompletionContext(parseComponentConfig(configSchema, config, context.provider));
  }

  override dumpComponent(): ComponentModel {
    const settings = { initialMessages: this.initialMessages };
    return dumpComponentModel({
      className: "UnboundedChatCompletionContext",
      componentType: "chat_completion_context",
      settings,
    });
  }

  protected override select(messages: readonly ModelMessage[]): ModelMessage[] {
    return [...messages];
  }
}
