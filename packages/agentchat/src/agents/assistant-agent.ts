import {
  type Component,
  type ComponentModel,
  InvalidInputError,
  type JsonObject,
  ModelClientError,
  type ModelMessage,
  type ToolCall,
  type ToolResult,
} from "@fenced/core";
import { checkOptions } from "@fenced/core/options";
import * as z from "zod";
import { jsonObjectSchema, mapSchema } from "../common/json.ts";
import { parseState } from "../common/parse-state.ts";
import type { SignalOptions } from "../common/signal-option.ts";
import { UnboundedChatCompletionContext } from "../contexts/unbounded-chat-completion-context.ts";
import type { MemoryContent } from "../memory/memory.ts";
import { memoryMessage, recall } from "../memory/recall.ts";
import type { AgentMessage } from "../messages/agent-event.ts";
import type { ChatMessage } from "../messages/chat-message.ts";
import {
  memoryQueryEvent,
  structuredMessage,
  textMessage,
  toolCallExecutionEvent,
  toolCallRequestEvent,
  toolCallSummaryMessage,
} from "../messages/create-message.ts";
import { isPiece } from "../messages/message-guards.ts";
import { messageToModelMessages } from "../messages/message-to-model-messages.ts";
import { parseStructuredAnswer, structuredRequest } from "../models/structured-answer.ts";
import { executeToolCalls } from "../tools/execute-tool-calls.ts";
import { type Tool, toJsonSchema, toToolSchema } from "../tools/tool.ts";
import { assertToolSet } from "./assert-tool-set.ts";
import { assistantAgentComponent, dumpAssistantAgent } from "./assistant-agent-config.ts";
import { type AssistantAgentOptions, assistantAgentOptions } from "./assistant-agent-options.ts";
import { BaseChatAgent } from "./base-chat-agent.ts";
import type { AgentResponse } from "./chat-agent.ts";
import { completeHandoff, findHandoff, handoffTool } from "./handoff.ts";
import { summarizeToolCalls } from "./summarize-tool-calls.ts";
import { cutMetadata, isCut, type ModelAnswer, Turn } from "./turn.ts";
import { undoUnfinishedTurn } from "./undo-unfinished-turn.ts";

type Items<Result> = AsyncGenerator<AgentMessage | AgentResponse, Result, void>;

type CompleteSettings = ReturnType<typeof completeSettings>;

const stateSchema = z.object({ modelContext: jsonObjectSchema, tools: mapSchema(jsonObjectSchema).optional() });
const defaultSystemMessage =
  "You are a helpful assistant. Solve the task, with your tools where they help. Once it is solved, say TERMINATE.";

/**
 * An agent that answers with a model and runs the tools and handoffs that the model asks for.
 *
 * @example
 * const coder = new AssistantAgent({ name: "coder", modelClient, systemMessage: "You write Python.", tools: [add] });
 * const { messages } = await coder.run({ task: "What is 6 times 7?" });
 */
export class AssistantAgent extends BaseChatAgent {
  /** Creates the agent that `dumpComponent` described. The agent owns the tools that are created for it. */
  static readonly component: Component<AssistantAgent> = assistantAgentComponent((options) => {
    const agent = new AssistantAgent(options);
    for (const tool of options.tools ?? []) {
      if (isAsyncDisposable(tool)) agent.own(tool);
    }
    return agent;
  });

  readonly #settings: CompleteSettings;
  readonly #tools: readonly Tool[];

  /** @throws InvalidInputError if an option is unknown or wrong, two tools share a name, or the model cannot call tools. */
  constructor(options: AssistantAgentOptions) {
    const settings = completeSettings(checkOptions(assistantAgentOptions, options, "AssistantAgent"));
    super(settings);
    this.#settings = settings;
    this.#tools = [...settings.tools, ...settings.handoffs.map(handoffTool)];
    assertToolSet(this.name, this.#tools, settings.modelClient.modelInfo);
    if (settings.outputSchema !== undefined) toJsonSchema(settings.outputSchema);
  }

  /** @throws ComponentError if a tool cannot be dumped. */
  override dumpComponent(): ComponentModel {
    return AssistantAgent.component.dump(dumpAssistantAgent(this.#settings));
  }

  override onMessagesStream(messages: readonly ChatMessage[], options: SignalOptions = {}): Items<void> {
    return this.turn(messages, options, (signal) =>
      undoUnfinishedTurn(this.#settings.modelContext, this.#answer(messages, new Turn(this.name, signal))),
    );
  }

  override async reset(): Promise<void> {
    this.assertIdle("be reset");
    await this.#settings.modelContext.reset();
    for (const tool of this.#tools) await tool.reset?.();
  }

  override async saveState(): Promise<JsonObject> {
    this.assertIdle("save its state");
    const modelContext = await this.#settings.modelContext.saveState();
    const tools: [string, JsonObject][] = [];
    for (const tool of this.#tools) {
      if (tool.saveState !== undefined) tools.push([tool.name, await tool.saveState()]);
    }
    return tools.length === 0 ? { modelContext } : { modelContext, tools: Object.fromEntries(tools) };
  }

  override async loadState(state: JsonObject): Promise<void> {
    this.assertIdle("load a state");
    const { modelContext, tools } = parseState(stateSchema, state, `agent "${this.name}"`);
    const lost = [...(tools?.keys() ?? [])].find((name) => !this.#tools.some((tool) => tool.name === name));
    if (lost !== undefined) {
      throw new InvalidInputError(`The state of agent "${this.name}" has the memory of a tool "${lost}"`, {
        remedy: "Load it into an agent with the same tools.",
      });
    }
    for (const tool of this.#tools) {
      const saved = tools?.get(tool.name);
      if (saved !== undefined) await tool.loadState?.(saved);
    }
    await this.#settings.modelContext.loadState(modelContext);
  }

  async *#answer(messages: readonly ChatMessage[], turn: Turn): Items<void> {
    const { modelContext, maxToolIterations, reflectOnToolUse, handoffs, memory } = this.#settings;
    for (const message of messages.flatMap(messageToModelMessages)) await modelContext.addMessage(message);
    const known = await recall(memory, messages, { signal: turn.signal });
    if (known.length > 0) yield turn.record(memoryQueryEvent({ source: this.name, content: known }));

    for (let left = maxToolIterations; ; left--) {
      const answer = yield* this.#askModel(turn, { withTools: left > 0, known });
      const calls = toolCallsOf(answer);
      if (calls.length === 0) return yield turn.response(this.#finalMessage(answer));

      const results = yield* this.#callTools(turn, calls, answer);
      const handoff = findHandoff({ source: this.name, handoffs, calls, results });
      if (handoff !== undefined) return yield turn.response(handoff);
      if (left === 1 && !reflectOnToolUse) return yield turn.response(this.#summary(calls, results));
    }
  }

  /** Asks the model about the conversation so far and remembers its answer. */
  async *#askModel(
    turn: Turn,
    { withTools, known }: { readonly withTools: boolean; readonly known: readonly MemoryContent[] },
  ): Items<ModelAnswer> {
    const { modelClient, modelContext, modelClientStream, outputSchema, systemMessage } = this.#settings;
    const system: ModelMessage[] = systemMessage === "" ? [] : [{ role: "system", content: systemMessage }];
    // Not in the context: what a memory knows may be different in the next turn.
    const remembered = memoryMessage(known) ?? [];
    const messages = [...system, remembered, await modelContext.getMessages()].flat();
    const asked =
      outputSchema === undefined
        ? { messages, request: {} }
        : structuredRequest(messages, { jsonSchema: toJsonSchema(outputSchema), modelInfo: modelClient.modelInfo });
    if (withTools) await Promise.all(this.#tools.map(async (tool) => tool.prepare?.({ signal: turn.signal })));
    const tools = withTools && this.#tools.length > 0 ? { tools: this.#tools.map(toToolSchema) } : {};
    const answer = yield* turn.askModel(asked.messages, {
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
    const metadata = cutMetadata(answer.result);
    yield turn.record(toolCallRequestEvent({ source: this.name, content: calls, modelsUsage, metadata }));
    const results = yield* this.#runTools(turn, calls);
    yield turn.record(toolCallExecutionEvent({ source: this.name, content: results }));
    await this.#settings.modelContext.addMessage({ role: "tool", content: results });
    return results;
  }

  /** Runs the tools, and shows what the agents behind them say. */
  async *#runTools(turn: Turn, calls: readonly ToolCall[]): Items<readonly ToolResult[]> {
    const running = executeToolCalls(calls, {
      tools: this.#tools,
      maxResultCharacters: this.#settings.maxToolResultCharacters,
      signal: turn.signal,
      agentName: this.name,
    });
    let step = await running.next();
    for (; step.done !== true; step = await running.next()) {
      yield isPiece(step.value) ? step.value : turn.record(step.value);
    }
    return step.value;
  }

  #finalMessage({ messageId, result }: ModelAnswer): ChatMessage {
    const text = typeof result.content === "string" ? result.content : "";
    const common = {
      id: messageId,
      source: this.name,
      modelsUsage: result.usage,
      metadata: cutMetadata(result),
    };
    const { outputSchema } = this.#settings;
    if (outputSchema === undefined) return textMessage({ ...common, content: text });
    if (isCut(result)) throw cutData(this.name, result.finishReason);
    return structuredMessage({ ...common, content: parseStructuredAnswer(text, outputSchema) });
  }

  #summary(toolCalls: readonly ToolCall[], results: readonly ToolResult[]): ChatMessage {
    const content = summarizeToolCalls(toolCalls, results, this.#settings.toolCallSummaryFormat);
    return toolCallSummaryMessage({ source: this.name, content, toolCalls, results });
  }
}

function completeSettings(options: AssistantAgentOptions) {
  return {
    name: options.name,
    modelClient: options.modelClient,
    description: options.description ?? "An assistant that answers questions and uses tools.",
    systemMessage: options.systemMessage ?? defaultSystemMessage,
    tools: [...(options.tools ?? [])],
    handoffs: (options.handoffs ?? []).map(completeHandoff),
    modelClientStream: options.modelClientStream ?? false,
    reflectOnToolUse: options.reflectOnToolUse ?? options.outputSchema !== undefined,
    maxToolIterations: options.maxToolIterations ?? 1,
    maxToolResultCharacters: options.maxToolResultCharacters ?? 100_000,
    memory: [...(options.memory ?? [])],
    modelContext: options.modelContext ?? new UnboundedChatCompletionContext(),
    outputSchema: options.outputSchema,
    toolCallSummaryFormat: options.toolCallSummaryFormat ?? "{result}",
  };
}

function toolCallsOf({ result }: ModelAnswer): readonly ToolCall[] {
  return typeof result.content === "string" ? [] : result.content;
}

function cutData(name: string, finishReason: string): ModelClientError {
  return new ModelClientError(`The answer of agent "${name}" is not whole: the model was stopped (${finishReason})`, {
    remedy: "Raise maxOutputTokens, or make the schema simpler.",
  });
}

function unexpectedToolCalls(name: string): ModelClientError {
  return new ModelClientError(`The model of agent "${name}" called tools, but was offered none`, {
    remedy: "Raise maxToolIterations, or set reflectOnToolUse to false.",
  });
}

/** True for an object that `await using` can dispose of. */
function isAsyncDisposable(value: object): value is AsyncDisposable {
  return Symbol.asyncDispose in value && typeof value[Symbol.asyncDispose] === "function";
}
