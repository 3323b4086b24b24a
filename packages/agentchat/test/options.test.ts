import { InvalidInputError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import {
  AndTermination,
  AssistantAgent,
  BufferedChatCompletionContext,
  CodeExecutorTool,
  CodeExecutorAgent,
  ExternalTermination,
  FunctionalTermination,
  handoffMessage,
  HandoffTermination,
  HeadAndTailChatCompletionContext,
  MaxMessageTermination,
  multiModalMessage,
  renderToConsole,
  RoundRobinGroupChat,
  SourceMatchTermination,
  stopMessage,
  structuredMessage,
  textMessage,
  TextMentionTermination,
  TextMessageTermination,
  TimeoutTermination,
  TokenLimitedChatCompletionContext,
  TokenUsageTermination,
  tool,
  toolCallSummaryMessage,
  UnboundedChatCompletionContext,
  UserProxyAgent,
} from "../src/index.ts";
import { ScriptedExecutor } from "./support/scripted-executor.ts";
import { ScriptedModel } from "./support/scripted-model.ts";
import { untyped } from "./support/untyped.ts";

const codeExecutor = new ScriptedExecutor([]);
const modelClient = new ScriptedModel([]);
const person = new UserProxyAgent({ name: "person" });

const hello = textMessage({ source: "user", content: "hello" });

function call(made: (...parameters: never[]) => unknown, ...parameters: readonly unknown[]): unknown {
  return Reflect.apply(made, undefined, parameters);
}

/** An agent as JavaScript sees it. */
interface UntypedAgent {
  onMessages(...parameters: readonly unknown[]): Promise<unknown>;
  onMessagesStream(...parameters: readonly unknown[]): AsyncGenerator<unknown, void, void>;
}

type Constructor = new (...parameters: never[]) => unknown;

/** Calls a constructor without type checks, as JavaScript does. */
function make(Class: Constructor, ...parameters: readonly unknown[]): unknown {
  return Reflect.construct(Class, parameters);
}

describe("options in JavaScript", () => {
  it.each<[Constructor, readonly unknown[], string]>([
    [AssistantAgent, [{ name: "a", modelClient, systemMesage: "x" }], 'Did you mean "systemMessage"?'],
    [AssistantAgent, [{ name: "a", modelClient: "gpt" }], '"modelClient" is not valid. It must be a model client.'],
    [AssistantAgent, [{ name: "a", modelClient, tools: [() => 1] }], '"tools[0]" is a function. It must be a tool'],
    [AssistantAgent, [{ name: "a", modelClient, handoffs: [{ to: "b" }] }], 'unknown option "handoffs[0].to"'],
    [AssistantAgent, [], "the options are missing"],
    [CodeExecutorAgent, [{ name: "a", codeExecutor, approve: () => true }], 'unknown option "approve"'],
    [CodeExecutorAgent, [{ name: "a", codeExecutor: {} }], '"codeExecutor" is an object. It must be a code executor.'],
    [CodeExecutorAgent, [{ name: "a", codeExecutor, approvalFunc: true }], '"approvalFunc" is true.'],
    [UserProxyAgent, [{ name: "a", input: () => "x" }], 'unknown option "input"'],
    [UserProxyAgent, [{ name: 5 }], '"name" is 5. It must be a string.'],
    [
      RoundRobinGroupChat,
      [[person, person]],
      "the options are an array. They must be an object, such as { participants: … }",
    ],
    [RoundRobinGroupChat, [{ participants: [person], maxTurn: 5 }], 'Did you mean "maxTurns"?'],
    [
      RoundRobinGroupChat,
      [{ participants: ["person"] }],
      '"participants[0]" is not valid. It must be an agent or a team.',
    ],
    [RoundRobinGroupChat, [{ participants: [person], terminationCondition: () => true }], "a termination condition"],
    [MaxMessageTermination, ["5"], '"maxMessages" is not valid. It must be a whole number, at least 1.'],
    [MaxMessageTermination, [5, { includeEvent: true }], 'Did you mean "includeEvents"?'],
    [TextMentionTermination, ["x", { source: "a" }], 'Did you mean "sources"?'],
    [TextMentionTermination, ["x", { sources: "a" }], '"sources" is a string. It must be an array.'],
    [TextMessageTermination, [5], '"source" is 5.'],
    [SourceMatchTermination, [5], '"sources" is 5.'],
    [HandoffTermination, [""], '"target" is empty.'],
    [FunctionalTermination, ["x"], '"func" is not valid. It must be a function.'],
    [TimeoutTermination, ["60"], '"timeoutMs" is not valid. It must be a positive number of milliseconds'],
    [TokenUsageTermination, [{ maxTokens: 5 }], 'unknown option "maxTokens"'],
    [
      AndTermination,
      [[new ExternalTermination(), true]],
      '"conditions[1]" is true. It must be a termination condition.',
    ],
    [UnboundedChatCompletionContext, [{ messages: [] }], 'unknown option "messages"'],
    [UnboundedChatCompletionContext, [{ initialMessages: "x" }], '"initialMessages" is a string.'],
    [BufferedChatCompletionContext, [5, { initial: [] }], 'unknown option "initial"'],
    [HeadAndTailChatCompletionContext, [{ headSize: 1 }], '"tailSize" is missing.'],
    [TokenLimitedChatCompletionContext, [{ tokenLimit: 5, countTokens: 4 }], '"countTokens" is 4.'],
    [CodeExecutorTool, [codeExecutor, { nme: "x" }], 'Did you mean "name"?'],
    [CodeExecutorTool, [{}], '"codeExecutor" is an object. It must be a code executor.'],
  ])("%o rejects %j", (Class, parameters, message) => {
    expect(() => make(Class, ...parameters)).toThrow(InvalidInputError);
    expect(() => make(Class, ...parameters)).toThrow(message);
  });

  it.each<[string, () => unknown, string]>([
    ["tool", () => call(tool, { name: "x", description: "y", parameters: z.object({}), exec() {} }), '"exec"'],
    [
      "tool",
      () => call(tool, { name: "x", description: "y", parameters: {}, execute() {} }),
      "It must be a schema of zod 4",
    ],
    ["tool", () => call(tool), "the options are missing"],
    ["textMessage", () => call(textMessage, { source: "a" }), '"content" is missing. It must be a string.'],
    ["textMessage", () => call(textMessage, { sorce: "a", content: "b" }), 'Did you mean "source"?'],
    ["stopMessage", () => call(stopMessage, { source: 5, content: "b" }), '"source" is 5.'],
    ["handoffMessage", () => call(handoffMessage, { source: "a", content: "b", to: "c" }), 'unknown option "to"'],
    ["multiModalMessage", () => call(multiModalMessage, { source: "a", content: "b" }), '"content" is a string.'],
    ["structuredMessage", () => call(structuredMessage, { source: "a", contents: {} }), 'Did you mean "content"?'],
    [
      "toolCallSummaryMessage",
      () => call(toolCallSummaryMessage, { source: "a", content: "" }),
      '"results" is missing',
    ],
  ])("are checked by %s", (_name, attempt, message) => {
    expect(attempt).toThrow(InvalidInputError);
    expect(attempt).toThrow(message);
  });

  it.each<[unknown, unknown, string]>([
    [5, {}, "onMessages: the messages are not an array."],
    [undefined, {}, "onMessages: the messages are not an array."],
    [hello, {}, "onMessages: the messages are not an array."],
    [["hello"], {}, "messages[0] is not a message: it is a string"],
    [[{ ...hello, type: "Text" }], {}, 'messages[0] is not a message: "type" is "Text". It must be "TextMessage", '],
    [
      [{ ...hello, metdata: {} }],
      {},
      'messages[0] is not a message: unknown option "metdata". Did you mean "metadata"?',
    ],
    [[hello], { sgnal: AbortSignal.abort() }, 'onMessages: unknown option "sgnal". Did you mean "signal"?'],
    [[hello], { signal: "stop" }, '"signal" is not valid. It must be an AbortSignal.'],
    [[hello], null, "the options are null."],
  ])("are checked by agents: onMessages(%j, %j)", async (messages, options, message) => {
    const agent = new AssistantAgent({ name: "a", modelClient });
    const untypedAgent: UntypedAgent = agent;
    const first = async (): Promise<unknown> => untypedAgent.onMessagesStream(messages, options).next();
    for (const attempt of [() => untypedAgent.onMessages(messages, options), first]) {
      await expect(attempt()).rejects.toThrow(InvalidInputError);
      await expect(attempt()).rejects.toThrow(message);
    }
    expect(modelClient.requests).toEqual([]);
  });

  it("are checked in the messages of a task", async () => {
    const team = new RoundRobinGroupChat({ participants: [person] });
    for (const task of [{ ...hello, metdata: {} }, [{ ...hello, metdata: {} }]]) {
      await expect(team.run({ task })).rejects.toThrow('Did you mean "metadata"?');
      await expect(person.run({ task })).rejects.toThrow(InvalidInputError);
    }
  });

  it("are checked by contexts", async () => {
    const context = new UnboundedChatCompletionContext();
    await expect(context.addMessage(untyped({ role: "usr", content: "x" }))).rejects.toThrow(InvalidInputError);
    expect(await context.getMessages()).toEqual([]);
  });

  it("are checked by runs and by renderToConsole", async () => {
    const run = (options: object) => new RoundRobinGroupChat({ participants: [person] }).run(options);
    await expect(run({ tsk: "go" })).rejects.toThrow('runStream: unknown option "tsk". Did you mean "task"?');
    await expect(run({ signal: "stop" })).rejects.toThrow('"signal" is not valid. It must be an AbortSignal.');
    const options = Object.assign({ summary: false }, { color: false });
    await expect(renderToConsole(person.runStream({ task: "go" }), options)).rejects.toThrow('mean "colors"?');
  });
});
