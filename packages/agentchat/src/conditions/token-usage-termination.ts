import {
  type ComponentContext,
  type ComponentModel,
  InvalidInputError,
  type JsonObject,
  parseComponentConfig,
} from "@fenced/core";
import * as z from "zod";
import { checkCount } from "../common/check-count.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import { BaseTerminationCondition, dumpCondition } from "./termination-condition.ts";

const configSchema = z.strictObject({
  maxTotalTokens: z.number().optional(),
  maxPromptTokens: z.number().optional(),
  maxCompletionTokens: z.number().optional(),
});

/** Limits, of which at least one is given. The chat ends with the turn that reaches one. */
export interface TokenUsageTerminationOptions {
  /** Tokens of requests and answers together. */
  readonly maxTotalTokens?: number | undefined;
  /** Tokens of requests. */
  readonly maxPromptTokens?: number | undefined;
  /** Tokens of answers. */
  readonly maxCompletionTokens?: number | undefined;
}

/** Ends the chat when its model calls have taken a number of tokens, by the `modelsUsage` of messages and events. */
export class TokenUsageTermination extends BaseTerminationCondition {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "termination";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly #limits: TokenUsageTerminationOptions;
  #promptTokens = 0;
  #completionTokens = 0;

  /** @throws InvalidInputError if there is no limit, or one is not a whole number of at least 1. */
  constructor(limits: TokenUsageTerminationOptions) {
    super();
    const given = Object.entries(limits).filter(([, limit]) => limit !== undefined);
    if (given.length === 0) {
      throw new InvalidInputError("TokenUsageTermination has no limit", {
        remedy: "Set maxTotalTokens, maxPromptTokens or maxCompletionTokens.",
      });
    }
    for (const [name, limit] of given) checkCount(name, Number(limit), 1);
    this.#limits = limits;
  }

  /** Makes the condition that `dumpComponent` described. */
  static fromConfig(config: JsonObject, context: ComponentContext): TokenUsageTermination {
    return new TokenUsageTermination(parseComponentConfig(configSchema, config, context.provider));
  }

  override dumpComponent(): ComponentModel {
    return dumpCondition("TokenUsageTermination", { ...this.#limits });
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
