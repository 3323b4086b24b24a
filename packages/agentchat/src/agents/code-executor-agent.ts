import type { CodeExecutor, ComponentContext, ComponentModel, JsonObject } from "@fenced/core";
import * as z from "zod";
import { checkCount } from "../common/check-count.ts";
import { leavableStream } from "../common/leavable-stream.ts";
import { parseState } from "../common/parse-state.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import type { ChatCompletionContext } from "../contexts/chat-completion-context.ts";
import { UnboundedChatCompletionContext } from "../contexts/unbounded-chat-completion-context.ts";
import { codeAnswer, CodeRunner } from "../execution/code-runner.ts";
import { findFencedCode, noCodeMessage } from "../execution/runnable-code.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import { textMessage } from "../messages/create-message.ts";
import { messageToModelMessages } from "../messages/message-to-model-messages.ts";
import { jsonObjectSchema } from "../models/model-message-schema.ts";
import { BaseChatAgent } from "./base-chat-agent.ts";
import type { Response } from "./chat-agent.ts";
import { dumpCodeExecutorAgent, loadCodeExecutorAgentOptions } from "./code-executor-agent-config.ts";
import type { CodeExecutorAgentOptions } from "./code-executor-agent-options.ts";
import { codeWritingTurn } from "./code-writing-turn.ts";
import { Turn } from "./turn.ts";
import { undoUnfinishedTurn } from "./undo-unfinished-turn.ts";

type Items = AsyncGenerator<AgentMessage | Response, void, void>;

const stateSchema = z.object({ modelContext: jsonObjectSchema });

/**
 * An agent that runs code.
 *
 * Without `modelClient` it runs the code blocks of the text messages that it receives and answers with the output.
 * With `modelClient` it writes the code itself, runs it, may correct it, and answers with what the model makes of the
 * output; every step is an event.
 *
 * @example
 * await using executor = new DockerCommandLineCodeExecutor();
 * const runner = new CodeExecutorAgent({ name: "runner", codeExecutor: executor, sources: ["coder"] });
 */
export class CodeExecutorAgent extends BaseChatAgent {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "agent";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly #options: CodeExecutorAgentOptions;
  readonly #maxRetries: number;
  readonly #modelContext: ChatCompletionContext;
  readonly #runner: CodeRunner;

  /** @throws InvalidInputError if the name is not one or `maxRetriesOnError` is not a whole number. */
  constructor(options: CodeExecutorAgentOptions) {
    super({ name: options.name, description: options.description ?? "Runs code and answers with its output." });
    this.#options = options;
    this.#maxRetries = checkCount("maxRetriesOnError", options.maxRetriesOnError ?? 0, 0);
    this.#modelContext = options.modelContext ?? new UnboundedChatCompletionContext();
    const { codeExecutor, supportedLanguages, approvalFunc } = options;
    this.#runner = new CodeRunner({ codeExecutor, supportedLanguages, approvalFunc });
  }

  /** Makes the agent that `dumpComponent` described. It owns its executor, and stops it when it is disposed of. */
  static async fromConfig(config: JsonObject, context: ComponentContext): Promise<CodeExecutorAgent> {
    const options = await loadCodeExecutorAgentOptions(config, context);
    const agent = new CodeExecutorAgent(options);
    agent.own(options.codeExecutor);
    return agent;
  }

  /** Where the code runs. */
  get codeExecutor(): CodeExecutor {
    return this.#options.codeExecutor;
  }

  /** @throws ComponentError if there is an `approvalFunc`: a function is not a setting. */
  override dumpComponent(): ComponentModel {
    return dumpCodeExecutorAgent({ ...this.#options, description: this.description, modelContext: this.#modelContext });
  }

  override onMessagesStream(messages: readonly ChatMessage[], { signal }: SignalOptions = {}): Items {
    return leavableStream((ended) => this.#takeTurn(messages, ended), signal);
  }

  override async reset(): Promise<void> {
    await this.#modelContext.reset();
  }

  override async saveState(): Promise<JsonObject> {
    return { modelContext: await this.#modelContext.saveState() };
  }

  override async loadState(state: JsonObject): Promise<void> {
    await this.#modelContext.loadState(parseState(stateSchema, state, `agent "${this.name}"`).modelContext);
  }

  async *#takeTurn(messages: readonly ChatMessage[], signal: AbortSignal): Items {
    signal.throwIfAborted();
    const { modelClient, modelClientStream = false } = this.#options;
    const languages = await this.#runner.start(signal);
    const turn = new Turn(this.name, signal);
    if (modelClient === undefined) {
      yield await this.#runReceived(messages, languages, turn);
      return;
    }
    const items = codeWritingTurn(messages, {
      turn,
      runner: this.#runner,
      modelClient,
      modelContext: this.#modelContext,
      stream: modelClientStream,
      maxRetries: this.#maxRetries,
      systemMessage: this.#options.systemMessage ?? this.#defaultSystemMessage(languages),
      languages,
    });
    yield* undoUnfinishedTurn(this.#modelContext, items);
  }

  async #runReceived(messages: readonly ChatMessage[], languages: readonly string[], turn: Turn): Promise<Response> {
    const { sources } = this.#options;
    const heard = messages.filter(({ source }) => sources === undefined || sources.includes(source));
    const texts = heard.flatMap((message) => (message.type === "TextMessage" ? [message.content] : []));
    const code = findFencedCode(texts, languages);
    if (code.runnable.length === 0) {
      return turn.response(textMessage({ source: this.name, content: noCodeMessage(code, languages) }));
    }
    const context = messages.flatMap(messageToModelMessages);
    const outcome = await this.#runner.run(code.runnable, { context, signal: turn.signal });
    return turn.response(codeAnswer(outcome, { source: this.name, content: outcome.text }));
  }

  #defaultSystemMessage(languages: readonly string[]): string {
    const functions = this.#options.codeExecutor.formatFunctionsForPrompt();
    const instructions =
      "You solve tasks by writing code. Put complete code, ready to run, in a Markdown fence that names its language " +
      `(one of: ${languages.join(", ")}); it is run at once, and you see what it prints, so let it print what you ` +
      "need to know. If no code is needed, just answer.";
    return functions === "" ? instructions : `${instructions}\n\n${functions}`;
  }
}
