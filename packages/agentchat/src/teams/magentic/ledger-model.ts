import { randomUUID } from "node:crypto";
import { type ChatCompletionClient, ModelClientError, type ModelMessage } from "@fenced/core";
import { withoutThoughts } from "../../common/without-thoughts.ts";
import type { AgentMessage } from "../../messages/agent-event.ts";
import { selectorEvent } from "../../messages/create-message.ts";
import { callModel } from "../../models/call-model.ts";
import { parseStructuredAnswer, structuredRequest } from "../../models/structured-answer.ts";
import { toJsonSchema } from "../../tools/tool.ts";
import { type ProgressLedger, progressLedgerSchema, toProgressLedger } from "./progress-ledger.ts";

type Items<Result> = AsyncGenerator<AgentMessage, Result, void>;

/** How often to ask for a progress ledger, as AutoGen does. */
const mostAttempts = 10;

/** The model that leads a team. */
export class LedgerModel {
  readonly #modelClient: ChatCompletionClient;
  readonly #source: string;
  readonly #signal: AbortSignal;

  /** @param source - the team's name. */
  constructor(modelClient: ChatCompletionClient, source: string, signal: AbortSignal) {
    this.#modelClient = modelClient;
    this.#source = source;
    this.#signal = signal;
  }

  /** Asks for text, and yields the answer as an event. */
  async *text(messages: readonly ModelMessage[]): Items<string> {
    return withoutThoughts(yield* this.#ask(messages, {})).trim();
  }

  /**
   * Asks how far the team is. Tells the model what is wrong with its answer until it has the form.
   *
   * @throws ModelClientError if it does not succeed.
   */
  async *progress(messages: readonly ModelMessage[], names: readonly string[]): Items<ProgressLedger> {
    const schema = progressLedgerSchema(names);
    const { modelInfo } = this.#modelClient;
    const asked = structuredRequest(messages, { jsonSchema: toJsonSchema(schema), modelInfo });
    const conversation = [...asked.messages];
    let last: unknown;
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      const answer = yield* this.#ask(conversation, asked.request);
      try {
        return toProgressLedger(schema.parse(parseStructuredAnswer(answer, schema)));
      } catch (error) {
        if (!ModelClientError.isInstance(error)) throw error;
        last = error;
        conversation.push({ role: "assistant", content: answer, source: this.#source });
        conversation.push({ role: "user", content: `${error.message} Answer again.`, source: this.#source });
      }
    }
    throw new ModelClientError(`The model gave no valid progress ledger in ${mostAttempts} attempts`, {
      remedy: "Use a model with structured output.",
      cause: last,
    });
  }

  async *#ask(
    messages: readonly ModelMessage[],
    request: ReturnType<typeof structuredRequest>["request"],
  ): Items<string> {
    const [source, signal, messageId] = [this.#source, this.#signal, randomUUID()];
    const { result } = yield* callModel(messages, {
      modelClient: this.#modelClient,
      stream: false,
      source,
      messageId,
      signal,
      request,
    });
    const content = typeof result.content === "string" ? result.content : "";
    yield selectorEvent({ id: messageId, source, content, modelsUsage: result.usage });
    return content;
  }
}
