import {
  type ComponentContext,
  type ComponentModel,
  type JsonObject,
  ModelClientError,
  type ModelMessage,
  type ToolCall,
  type ToolResult,
} from "@fenced/core";
import * as z from "zod";
import { checkCount } from "../common/check-count.ts";
import { isAsyncDisposable } from "../common/is-async-disposable.ts";
import { leavableStream } from "../common/leavable-stream.ts";
import { parseState } from "../common/parse-state.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import type { ChatCompletionContext } from "../contexts/chat-completion-context.ts";
import { UnboundedChatCompletionContext } from "../contexts/unbounded-chat-completion-context.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import {
  structuredMessage,
  textMessage,
  toolCallExecutionEvent,
  toolCallRequestEvent,
  toolCallSummaryMessage,
} from "../messages/create-message.ts";
import { messageToModelMessages } from "../messages/message-to-model-messages.ts";
import { jsonObjectSchema } from "../models/model-message-schema.ts";
import { parseStructuredAnswer, structuredRequest } from "../models/structured-answer.ts";
import { executeToolCalls } from "../tools/execute-tool-calls.ts";
import { type Tool, toJsonSchema, toToolSchema } from "../tools/tool.ts";
import { askModel } from "./ask-model.ts";
import { assertToolSet } from "./assert-tool-set.ts";
import { dumpAssistantAgent, loadAssistantAgentOptions } from "./assistant-agent-config.ts";
import type { AssistantAgentOptions } from "./assistant-agent-options.ts";
import { BaseChatAgent } from "./base-chat-agent.ts";
import type { Response } from "./chat-agent.ts";
import { type CompleteHandoff, completeHandoff, findHandoff, handoffTool } from "./handoff.ts";
import { summarizeToolCalls } from "./summarize-tool-calls.ts";
import { type ModelAnswer, Turn } from "./turn.ts";
import { undoUnfinishedTurn } from "./undo-unfinished-turn.ts";

type Items<Result> = AsyncGenerator<AgentMessage | Response, Result, void>;

interface CompleteSettings extends AssistantAgentOptions {
  readonly description: string;
  readonly systemMessage: string;
  readonly tools: readonly Tool[];
  readonly handoffs: readonly CompleteHandoff[];
  readonly modelClientStream: boolean;
  readonly reflectOnToolUse: boolean;
  readonly maxToolIterations: number;
  readonly modelContext: ChatCompletionContext;
  readonly toolCallSummaryFormat: string;
}

const stateSchema = z.object({ modelContext: jsonObjectSchema });
const defaultSystemMessage =
  "You are a helpful assistant. Solve the task, with your tools where they help. Once it is solved, say TERMINATE.";

/**
 * An agent that answers with a model, and with the tools and handoffs that the model asks for.
 *
 * @example
 * const coder = new AssistantAgent({ name: "coder", modelClient, systemMessage: "You write Python.", tools: [add] });
 * const { messages } = await coder.run({ task: "What is 6 times 7?" });
 */
export class AssistantAgent extends BaseChatAgent {
  /** The kind of component, for `loadComponent`. */
  static readonly componentType = "agent";
  /** The version of the config, for `loadComponent`. */
  static readonly componentVersion = 1;

  readonly #settings: CompleteSettings;
  readonly #tools: readonly Tool[];

  /** @throws InvalidInputError if a name is not one or stands twice, or the model cannot call tools. */
  constructor(options: AssistantAgentOptions) {
    const settings = completeSettings(options);
    super(settings);
    this.#settings = settings;
    this.#tools = [...settings.tools, ...settings.handoffs.map(handoffTool)];
    assertToolSet(this.name, this.#tools, settings.modelClient.modelInfo);
  }

  /** Makes the agent that `dumpComponent` described. It owns the tools that were made for it. */
  static async fromConfig(config: JsonObject, context: ComponentContext): Promise<AssistantAgent> {
    const options = await loadAssistantAgentOptions(config, context);
    const agent = new AssistantAgent(options);
    for (const tool of options.tools ?? []) {
      if (isAsyncDisposable(tool)) agent.own(tool);
    }
    return agent;
  }

  /** @throws ComponentError if there is a tool that cannot be dumped. */
  override dumpComponent(): ComponentModel {
    return dumpAssistantAgent(this.#settings);
  }

  override onMessagesStream(messages: readonly ChatMessage[], { signal }: SignalOptions = {}): Items<void> {
    return leavableStream((ended) => this.#takeTurn(messages, ended), signal);
  }

  override async reset(): Promise<void> {
    await this.#settings.modelContext.reset();
  }

  override async saveState(): Promise<JsonObject> {
    return { modelContext: await this.#settings.modelContext.saveState() };
  }

  override async loadState(state: JsonObject): Promise<void> {
    await this.#settings.modelContext.loadState(parseState(stateSchema, state, `agent "${this.name}"`).modelContext);
  }

  async *#takeTurn(messages: readonly ChatMessage[], signal: AbortSignal): Items<void> {
    signal.throwIfAborted();
    yield* undoUnfinishedTurn(this.#settings.modelContext, this.#answer(messages, new Turn(this.name, signal)));
  }

  async *#answer(messages: readonly ChatMessage[], turn: Turn): Items<void> {
    const { modelContext, maxToolIterations, reflectOnToolUse, handoffs } = this.#settings;
    for (const message of messages.flatMap(messageToModelMessages)) await modelContext.addMessage(message);

    for (let left = maxToolIterations; ; left--) {
      const answer = yield* this.#askModel(turn, { withTools: left > 0 });
      const calls = toolCallsOf(answer);
      if (calls.length === 0) return yield turn.response(this.#finalMessage(answer));

      const results = yield* this.#callTools(turn, calls, answer);
      const handoff = findHandoff({ source: this.name, handoffs, calls, results });
      if (handoff !== undefined) return yield turn.response(handoff);
      if (left === 1 && !reflectOnToolUse) return yield turn.response(this.#summary(calls, results));
    }
  }

  /** Asks the model about the conversation so far and remembers its answer. */
  async *#askModel(turn: Turn, { withTools }: { readonly withTools: boolean }): Items<ModelAnswer> {
    const { modelClient, modelContext, modelClientStream, outputSchema, systemMessage } = this.#settings;
    const system: ModelMessage[] = systemMessage === "" ? [] : [{ role: "system", content: systemMessage }];
    const messages = [...system, ...(await modelContext.getMessages())];
    const asked =
      outputSchema === undefined
        ? { messages, request: {} }
        : structuredRequest(messages, { jsonSchema: toJsonSchema(outputSchema), modelInfo: modelClient.modelInfo });
    const tools = withTools && this.#tools.length > 0 ? { tools: this.#tools.map(toToolSchema) } : {};
    const answer = yield* askModel(turn, asked.messages, {
      modelClient,
      stream: modelClientStream,
      request: { ...asked.request, ...tools },
    });
    if (!withTools && toolCallsOf(answer).length > 0) throw unexpectedToolCalls(this.name);

    await modelContext.addMessage(turn.memoryOf(answer.result));
    return answer;
  }

  async *#callTools(turn: Turn, calls: readonly ToolCall[], answer: ModelAnswer): Items<readonly ToolResult[]> {
    const modelsUsage = answer.result.usage;
    yield turn.record(toolCallRequestEvent({ source: this.name, content: calls, modelsUsage }));
    const results = await executeToolCalls(calls, { tools: this.#tools, signal: turn.signal, agentName: this.name });
    yield turn.record(toolCallExecutionEvent({ source: this.name, content: results }));
    await this.#settings.modelContext.addMessage({ role: "tool", content: results });
    return results;
  }

  #finalMessage({ messageId, result }: ModelAnswer): ChatMessage {
    const text = typeof result.content === "string" ? result.content : "";
    const common = { id: messageId, source: this.name, modelsUsage: result.usage };
    const { outputSchema } = this.#settings;
    if (outputSchema === undefined) return textMessage({ ...common, content: text });
    return structuredMessage({ ...common, content: parseStructuredAnswer(text, outputSchema) });
  }

  #summary(toolCalls: readonly ToolCall[], results: readonly ToolResult[]): ChatMessage {
    const content = summarizeToolCalls(toolCalls, results, this.#settings.toolCallSummaryFormat);
    return toolCallSummaryMessage({ source: this.name, content, toolCalls, results });
  }
}

function completeSettings(options: AssistantAgentOptions): CompleteSettings {
  return {
    name: options.name,
    modelClient: options.modelClient,
    description: options.description ?? "An assistant that answers questions and uses tools.",
    systemMessage: options.systemMessage ?? defaultSystemMessage,
    tools: [...(options.tools ?? [])],
    handoffs: (options.handoffs ?? []).map(completeHandoff),
    modelClientStream: options.modelClientStream ?? false,
    reflectOnToolUse: options.reflectOnToolUse ?? options.outputSchema !== undefined,
    maxToolIterations: checkCount("maxToolIterations", options.maxToolIterations ?? 1, 1),
    modelContext: options.modelContext ?? new UnboundedChatCompletionContext(),
    outputSchema: options.outputSchema,
    toolCallSummaryFormat: options.toolCallSummaryFormat ?? "{result}",
  };
}

function toolCallsOf({ result }: ModelAnswer): readonly ToolCall[] {
  return typeof result.content === "string" ? [] : result.content;
}

function unexpectedToolCalls(name: string): ModelClientError {
  return new ModelClientError(`The model of agent "${name}" asked for tools although it was offered none`, {
    remedy: "Raise maxToolIterations, or set reflectOnToolUse to false.",
  });
}
