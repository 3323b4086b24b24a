import { type Component, type ComponentModel, defineComponent } from "@fenced/core";
import { checkOptions, wholeNumberOption } from "@fenced/core/options";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { BaseTerminationCondition } from "./termination-condition.ts";

const limit = wholeNumberOption({ from: 1, unit: "tokens" }).optional();
const configSchema = z
  .strictObject({ maxTotalTokens: limit, maxPromptTokens: limit, maxCompletionTokens: limit })
  .refine((limits) => Object.values(limits).some((each) => each !== undefined), {
    error: "must set maxTotalTokens, maxPromptTokens or maxCompletionTokens",
  });

/** Limits; set at least one. The chat ends with the turn that reaches one. */
export interface TokenUsageTerminationOptions {
  /** Maximum tokens of requests and answers together. */
  readonly maxTotalTokens?: number | undefined;
  /** Maximum tokens of requests. */
  readonly maxPromptTokens?: number | undefined;
  /** Maximum tokens of answers. */
  readonly maxCompletionTokens?: number | undefined;
}

/** Ends the chat when its model calls have used a number of tokens, according to `modelsUsage` of messages and events. */
export class TokenUsageTermination extends BaseTerminationCondition {
  /** How `loadComponent` creates it. */
  static readonly component: Component<TokenUsageTermination> = defineComponent({
    provider: "@fenced/agentchat:TokenUsageTermination",
    componentType: "termination",
    schema: configSchema,
    load: (config) => new TokenUsageTermination(config),
  });

  readonly #limits: TokenUsageTerminationOptions;
  #promptTokens = 0;
  #completionTokens = 0;

  /** @throws InvalidInputError if there is no limit, or one is unknown or not a whole number of at least 1. */
  constructor(limits: TokenUsageTerminationOptions) {
    super();
    this.#limits = checkOptions(configSchema, limits, "TokenUsageTermination");
  }

  override dumpComponent(): ComponentModel {
    return TokenUsageTermination.component.dump({ ...this.#limits });
  }

  protected override findReason(messages: readonly AgentMessage[]): string | undefined {
    for (const { modelsUsage } of messages) {
      this.#promptTokens += modelsUsage?.promptTokens ?? 0;
      this.#completionTokens += modelsUsage?.completionTokens ?? 0;
    }
    const { maxTotalTokens = Infinity, maxPromptTokens = Infinity, maxCompletionTokens = Infinity } = this.#limits;
    const total = this.#promptTokens + this.#completionTokens;
    const goesOn =
      total < maxTotalTokens && this.#promptTokens < maxPromptTokens && this.#completionTokens < maxCompletionTokens;
    if (goesOn) return undefined;
    return `The token limit is reached: ${this.#promptTokens} in requests, ${this.#completionTokens} in answers.`;
  }

  protected override restart(): void {
    this.#promptTokens = 0;
    this.#completionTokens = 0;
  }
}
