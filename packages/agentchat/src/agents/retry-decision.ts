import {
  type ChatCompletionClient,
  type JsonObject,
  ModelClientError,
  type ModelMessage,
  type ModelUsage,
} from "@fenced/core";
import * as z from "zod";
import type { AgentMessage } from "../messages/agent-event.ts";
import { callModel } from "../models/call-model.ts";
import { findJson, structuredRequest } from "../models/structured-answer.ts";
import { toJsonSchema } from "../tools/tool.ts";

/** A model's decision after its code failed. */
export interface RetryDecision {
  /** What went wrong, and what should be done differently. */
  readonly reason: string;
  readonly retry: boolean;
  readonly usage: ModelUsage;
  /** What the model thought before it decided. */
  readonly thought?: string;
}

const decisionSchema = z.object({
  reason: z.string().describe("What went wrong, and what the next attempt should do differently."),
  retry: z.boolean().describe("Whether another attempt can succeed."),
});
const jsonSchema: JsonObject = toJsonSchema(decisionSchema);

/** Models without structured output may write the boolean as text. */
const lenientSchema = decisionSchema.extend({
  retry: z.preprocess((value) => (typeof value === "string" ? wordToBoolean(value) : value), z.boolean()),
});

const question =
  "The code did not succeed. Decide whether another attempt can: say what went wrong and what the next attempt " +
  "should do differently (reason), and whether to make it (retry). Do not write the code yet.";

/**
 * Asks a model whether it wants to try again. An answer that neither this function nor the model client can parse means
 * no: it must not cost the results of what ran.
 */
export async function* askRetryDecision(
  messages: readonly ModelMessage[],
  options: {
    readonly modelClient: ChatCompletionClient;
    readonly source: string;
    readonly signal: AbortSignal | undefined;
  },
): AsyncGenerator<AgentMessage, RetryDecision, void> {
  const asked = structuredRequest([...messages, { role: "user", content: question, source: options.source }], {
    jsonSchema,
    modelInfo: options.modelClient.modelInfo,
  });
  const call = callModel(asked.messages, { ...options, request: asked.request, stream: false, messageId: "" });
  try {
    const { content, usage, thought } = (yield* call).result;
    const decision = parseDecision(typeof content === "string" ? content : "");
    return { ...decision, usage, ...(thought === undefined ? {} : { thought }) };
  } catch (error) {
    if (!ModelClientError.isInstance(error)) throw error;
    return { reason: error.message, retry: false, usage: { promptTokens: 0, completionTokens: 0 } };
  }
}

function parseDecision(text: string): Pick<RetryDecision, "reason" | "retry"> {
  const parsed = lenientSchema.safeParse(findJson(text, lenientSchema));
  return parsed.success ? parsed.data : { reason: text, retry: false };
}

function wordToBoolean(word: string): boolean | undefined {
  if (/^(?:true|yes)$/i.test(word.trim())) return true;
  return /^(?:false|no)$/i.test(word.trim()) ? false : undefined;
}
