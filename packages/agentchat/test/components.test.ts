import { ComponentError, type ComponentModel, loadComponent } from "@fenced/core";
import { describe, expect, it, vi } from "vitest";
import * as z from "zod";
import * as agentchat from "../src/index.ts";
import {
  AgentTool,
  AssistantAgent,
  BufferedChatCompletionContext,
  CodeExecutorTool,
  CodeExecutorAgent,
  DiGraphBuilder,
  ExternalTermination,
  FunctionalTermination,
  FunctionCallTermination,
  GraphFlow,
  HandoffTermination,
  HeadAndTailChatCompletionContext,
  ListMemory,
  MagenticOneGroupChat,
  MaxMessageTermination,
  MessageFilterAgent,
  RoundRobinGroupChat,
  SelectorGroupChat,
  SourceMatchTermination,
  StopMessageTermination,
  Swarm,
  TeamTool,
  TextMentionTermination,
  TextMessageTermination,
  TimeoutTermination,
  TokenLimitedChatCompletionContext,
  TokenUsageTermination,
  tool,
  UnboundedChatCompletionContext,
  UserProxyAgent,
} from "../src/index.ts";
import { python } from "./support/python.ts";
import { ScriptedExecutor } from "./support/scripted-executor.ts";
import { ScriptedModel } from "./support/scripted-model.ts";
import { throughJson } from "./support/through-json.ts";

const modelClient = new ScriptedModel([python("print(7)"), "Seven."]);
const codeExecutor = new ScriptedExecutor();
const initialMessages = [{ role: "user" as const, content: "hi", source: "user" }];

const inner = new RoundRobinGroupChat({ participants: [new UserProxyAgent({ name: "other" })], name: "inner" });
const [writer, critic] = ["writer", "critic"].map((name) => new AssistantAgent({ name, modelClient }));
if (writer === undefined || critic === undefined) throw new Error("Expected two agents.");
const graph = new DiGraphBuilder().addNode(writer).addNode(critic).addNode(inner, { activation: "any" });
graph.addEdge(writer, critic).addConditionalEdges(critic, { no: writer, yes: inner }).setEntryPoint(writer);

interface Dumps {
  dumpComponent(): ComponentModel;
}

async function load<T>(model: ComponentModel): Promise<T> {
  return loadComponent<T>(model, {
    importModule: async (specifier) =>
      specifier === "@fenced/agentchat" ? agentchat : { ScriptedExecutor, ScriptedModel },
  });
}

describe.each([
  new UnboundedChatCompletionContext({ initialMessages }),
  new BufferedChatCompletionContext(3, { initialMessages }),
  new HeadAndTailChatCompletionContext({ headSize: 1, tailSize: 2, initialMessages }),
  new TokenLimitedChatCompletionContext({ tokenLimit: 100, initialMessages }),
  new MaxMessageTermination(3, { includeEvents: true }),
  new TextMentionTermination("DONE", { sources: ["a"], unlessCode: true }),
  new TextMessageTermination("a"),
  new TextMessageTermination(),
  new StopMessageTermination(),
  new TokenUsageTermination({ maxTotalTokens: 10 }),
  new TimeoutTermination(1500),
  new ExternalTermination(),
  new SourceMatchTermination(["a", "b"]),
  new FunctionCallTermination("submit"),
  new HandoffTermination("user"),
  new MaxMessageTermination(3).or(new TextMentionTermination("x").and(new ExternalTermination())),
  new UserProxyAgent({ name: "person", description: "Decides." }),
  new AssistantAgent({
    name: "helper",
    modelClient,
    systemMessage: "Be kind.",
    description: "Helps.",
    tools: [new CodeExecutorTool(codeExecutor, { name: "run" })],
    handoffs: ["critic", { target: "user", message: "yours" }],
    modelClientStream: true,
    reflectOnToolUse: false,
    maxToolIterations: 3,
    memory: [new ListMemory({ name: "user", contents: [{ content: "x", metadata: { a: 1 } }] })],
    modelContext: new BufferedChatCompletionContext(5),
    outputSchema: z.object({ answer: z.number() }),
    toolCallSummaryFormat: "{result}!",
  }),
  new CodeExecutorAgent({
    name: "analyst",
    codeExecutor,
    modelClient,
    modelClientStream: true,
    maxRetriesOnError: 2,
    systemMessage: "Write code.",
    description: "Analyses.",
    sources: ["a"],
    supportedLanguages: ["python"],
    modelContext: new BufferedChatCompletionContext(5),
  }),
  new RoundRobinGroupChat({
    participants: [new UserProxyAgent({ name: "person" }), new CodeExecutorAgent({ name: "runner", codeExecutor })],
    terminationCondition: new MaxMessageTermination(3),
    maxTurns: 4,
    emitTeamEvents: true,
    name: "pair",
    description: "Two.",
  }),
  new SelectorGroupChat({
    participants: [inner, new UserProxyAgent({ name: "person" })],
    modelClient,
    selectorPrompt: "{roles} {participants} {history}",
    allowRepeatedSpeaker: true,
    maxSelectorAttempts: 2,
    modelClientStream: true,
    modelContext: new BufferedChatCompletionContext(5),
    terminationCondition: new MaxMessageTermination(3),
    maxTurns: 10,
  }),
  new MessageFilterAgent({
    name: "filtered",
    agent: new UserProxyAgent({ name: "person" }),
    perSource: [{ source: "a", position: "last", count: 2 }, { source: "user" }],
  }),
  new ListMemory({ name: "facts", contents: [{ content: "x", mimeType: "text/markdown" }] }),
  new MagenticOneGroupChat({
    participants: [new UserProxyAgent({ name: "person" })],
    modelClient,
    maxTurns: 5,
    maxStalls: 2,
    finalAnswerPrompt: "Answer {task}.",
    emitTeamEvents: true,
  }),
  new Swarm({
    participants: [new AssistantAgent({ name: "a", modelClient, handoffs: ["user"] })],
    terminationCondition: new HandoffTermination("user"),
    maxTurns: 5,
  }),
  new GraphFlow({
    participants: graph.getParticipants(),
    graph: graph.build(),
    terminationCondition: new MaxMessageTermination(9),
  }),
  new AgentTool(new UserProxyAgent({ name: "person" }), { returnValueAsLastMessage: true }),
  new TeamTool(inner, { name: "pair", description: "Two.", returnValueAsLastMessage: false }),
])("$constructor.name", (component: Dumps) => {
  it("survives a round trip through JSON", async () => {
    const model = component.dumpComponent();
    const loaded = await load<Dumps>(model);
    expect(loaded.constructor).toBe(component.constructor);
    expect(loaded.dumpComponent()).toEqual(model);
    expect(throughJson(model)).toEqual(model);
  });

  it("rejects an unknown setting", async () => {
    const model = component.dumpComponent();
    await expect(load({ ...model, config: { ...model.config, colour: "red" } })).rejects.toThrow(/colour/);
  });
});

describe("loadComponent", () => {
  it("loads a team that runs", async () => {
    const analyst = new CodeExecutorAgent({ name: "analyst", codeExecutor, modelClient });
    const team = await load<RoundRobinGroupChat>(
      new RoundRobinGroupChat({ participants: [analyst], maxTurns: 1 }).dumpComponent(),
    );
    const { messages } = await team.run({ task: "How many?" });
    expect(messages.at(-1)).toMatchObject({ content: "Seven." });
  });

  it("makes loaded agents stop their executors and those of their tools", async () => {
    const stop = vi.spyOn(ScriptedExecutor.prototype, "stop");
    const tools = [new CodeExecutorTool(codeExecutor)];
    const participants = [
      new AssistantAgent({ name: "helper", modelClient, tools }),
      new CodeExecutorAgent({ name: "runner", codeExecutor }),
    ];
    await using team = await load<RoundRobinGroupChat>(new RoundRobinGroupChat({ participants }).dumpComponent());
    await team[Symbol.asyncDispose]();
    expect(stop).toHaveBeenCalledTimes(2);
    expect(codeExecutor.stopped).toBe(0);
  });
});

describe("a loaded component", () => {
  it("stops every executor that it owns, even if one fails to stop", async () => {
    const stop = vi.spyOn(ScriptedExecutor.prototype, "stop").mockRejectedValueOnce(new Error("stuck"));
    const tools = ["one", "two"].map((name) => new CodeExecutorTool(codeExecutor, { name }));
    const participants = [
      new AssistantAgent({ name: "helper", modelClient, tools }),
      new CodeExecutorAgent({ name: "runner", codeExecutor }),
    ];
    const team = await load<RoundRobinGroupChat>(new RoundRobinGroupChat({ participants }).dumpComponent());
    stop.mockClear();
    await expect(team[Symbol.asyncDispose]()).rejects.toThrow("stuck");
    expect(stop).toHaveBeenCalledTimes(3);
  });
});

describe("dumpComponent", () => {
  it("rejects tools, conditions, selectors and edges that hold functions", () => {
    const add = tool({ name: "add", description: "", parameters: z.object({}), execute: () => 1 });
    const helper = new AssistantAgent({ name: "helper", modelClient, tools: [add] });
    expect(() => helper.dumpComponent()).toThrow(/The tool "add" cannot be dumped/);
    const team = new RoundRobinGroupChat({
      participants: [new UserProxyAgent({ name: "person" })],
      terminationCondition: new MaxMessageTermination(3).or(new FunctionalTermination(() => true)),
    });
    expect(() => team.dumpComponent()).toThrow(ComponentError);
    const selecting = new SelectorGroupChat({
      participants: [helper, inner],
      modelClient,
      selectorFunc: () => "inner",
    });
    expect(() => selecting.dumpComponent()).toThrow(ComponentError);
    const builder = new DiGraphBuilder()
      .addNode(inner)
      .addNode(writer)
      .addEdge(inner, writer, { condition: () => true });
    const flow = new GraphFlow({ participants: builder.getParticipants(), graph: builder.build() });
    expect(() => flow.dumpComponent()).toThrow('The edge from "inner" to "writer" cannot be dumped');
  });
});
