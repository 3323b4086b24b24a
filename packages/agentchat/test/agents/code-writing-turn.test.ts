import { type JsonObject, ModelClientError } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { CodeExecutorAgent, type CodeExecutorAgentOptions, textMessage } from "../../src/index.ts";
import { collect, types } from "../support/collect.ts";
import { python } from "../support/python.ts";
import { codeResult, ScriptedExecutor } from "../support/scripted-executor.ts";
import { never, type ScriptedAnswer, ScriptedModel } from "../support/scripted-model.ts";
import { throughJson } from "../support/through-json.ts";

const task = [textMessage({ source: "user", content: "How many?" })];
const failure = codeResult({ exitCode: 1, output: "KeyError: 'x'\n" });

function retry(again: boolean, reason: string = "the key is y"): string {
  return JSON.stringify({ reason, retry: again });
}

function writer(
  answers: readonly ScriptedAnswer[],
  steps: ConstructorParameters<typeof ScriptedExecutor>[0],
  {
    model,
    ...options
  }: Partial<CodeExecutorAgentOptions> & { model?: ConstructorParameters<typeof ScriptedModel>[1] } = {},
): { agent: CodeExecutorAgent; modelClient: ScriptedModel; codeExecutor: ScriptedExecutor } {
  const modelClient = new ScriptedModel(answers, model);
  const codeExecutor = new ScriptedExecutor(steps);
  const agent = new CodeExecutorAgent({ name: "analyst", codeExecutor, modelClient, ...options });
  return { agent, modelClient, codeExecutor };
}

describe("CodeExecutorAgent with a model", () => {
  it("writes code, runs it, and answers with the model's reflection on the output", async () => {
    const { agent, modelClient } = writer([python("print(7)"), "There are seven."], [codeResult({ output: "7\n" })]);
    const { chatMessage, innerMessages } = await agent.onMessages(task);
    expect(types(innerMessages)).toEqual(["CodeGenerationEvent", "CodeExecutionEvent"]);
    expect(innerMessages).toMatchObject([
      { retryAttempt: 0, codeBlocks: [{ language: "python" }] },
      { retryAttempt: 0, result: { output: "7\n", exitCode: 0 } },
    ]);
    expect(chatMessage).toMatchObject({ type: "TextMessage", content: "There are seven.", source: "analyst" });
    const [system, ...first] = modelClient.requests[0]?.messages ?? [];
    expect(system?.content).toContain("one of: python, sh");
    expect(first).toEqual([{ role: "user", content: "How many?", source: "user" }]);
    expect(modelClient.requests[1]?.messages.slice(2, 4)).toEqual([
      { role: "assistant", content: python("print(7)"), source: "analyst" },
      { role: "user", content: "7\n", source: "analyst" },
    ]);
  });

  it("remembers the model's thoughts along with its answers", async () => {
    const answers = [
      { content: python("a"), thought: "easy" },
      { content: "Done.", thought: "that was it" },
    ];
    const { agent } = writer(answers, []);
    const { innerMessages } = await agent.onMessages(task);
    expect(types(innerMessages)).toEqual(["ThoughtEvent", "CodeGenerationEvent", "CodeExecutionEvent", "ThoughtEvent"]);
    expect(await agent.saveState()).toMatchObject({
      modelContext: {
        messages: [
          { content: "How many?" },
          { role: "assistant", content: python("a"), thought: "easy", source: "analyst" },
          { role: "user" },
          { role: "assistant", content: "Done.", thought: "that was it", source: "analyst" },
        ],
      },
    });
  });

  it("tells programs that an answer was cut", async () => {
    const cut = { finishReason: "length" } as const;
    const { agent } = writer(
      [
        { content: `${python("7")}\nand`, ...cut },
        { content: "Seven, b", ...cut },
      ],
      [],
    );
    const { chatMessage, innerMessages } = await agent.onMessages(task);
    expect(innerMessages[0]).toMatchObject({ type: "CodeGenerationEvent", metadata: cut });
    expect(chatMessage.metadata).toEqual({ exitCode: "0", ...cut });
  });

  it("answers in text if there is nothing to run", async () => {
    const { agent, codeExecutor } = writer(["It is ```json\n{}\n``` seven."], []);
    const { chatMessage, innerMessages } = await agent.onMessages(task);
    expect(chatMessage).toMatchObject({ type: "TextMessage", content: "It is ```json\n{}\n``` seven." });
    expect(innerMessages).toEqual([]);
    expect(codeExecutor.given).toEqual([]);
  });

  it("does not ask about a retry if none is allowed", async () => {
    const { agent, modelClient } = writer([python("x"), "It failed."], [failure]);
    const { chatMessage } = await agent.onMessages(task);
    expect(chatMessage).toMatchObject({ content: "It failed.", metadata: { exitCode: "1" } });
    expect(modelClient.requests).toHaveLength(2);
    expect(modelClient.requests[1]?.messages.at(-2)?.content).toBe(
      "The code failed with exit code 1. Its output:\nKeyError: 'x'\n",
    );
  });

  it("retries up to maxRetriesOnError times without repeating the task", async () => {
    const answers = [python("a"), retry(true), python("b"), retry(true), python("c"), "Done."];
    const { agent, modelClient, codeExecutor } = writer(answers, [failure, failure], { maxRetriesOnError: 2 });
    const { innerMessages } = await agent.onMessages(task);
    const attempt = ["CodeGenerationEvent", "CodeExecutionEvent"];
    expect(types(innerMessages)).toEqual([...attempt, "ThoughtEvent", ...attempt, "ThoughtEvent", ...attempt]);
    expect(innerMessages.flatMap((event) => ("retryAttempt" in event ? [event.retryAttempt] : []))).toEqual([
      0, 0, 1, 1, 2, 2,
    ]);
    expect(codeExecutor.given).toHaveLength(3);
    expect(modelClient.requests[1]?.options.jsonSchema).toMatchObject({ required: ["reason", "retry"] });
    const last = modelClient.requests.at(-1)?.messages ?? [];
    expect(last.filter(({ content }) => content === "How many?")).toHaveLength(1);
    expect(last.filter(({ content }) => content === "the key is y")).toHaveLength(2);
  });

  it.each([false, true])("lists every streamed event in its response, in order (chunks: %s)", async (stream) => {
    const answers = [
      { content: python("a"), thought: "hm" },
      { content: retry(true), thought: "again?" },
      python("b"),
      { content: "Ok.", thought: "so" },
    ];
    const { agent } = writer(answers, [failure], { maxRetriesOnError: 1, modelClientStream: stream });
    const items = await collect(agent.onMessagesStream(task));
    const events = items.slice(0, -1).filter((item) => types([item])[0] !== "ModelClientStreamingChunkEvent");
    const last = items.at(-1);
    expect(last !== undefined && "innerMessages" in last && last.innerMessages).toEqual(events);
    expect(types(events)).toHaveLength(8);
    const all = [...events, ...(last !== undefined && "chatMessage" in last ? [last.chatMessage] : [])];
    const used = all.map((item) => ("modelsUsage" in item ? item.modelsUsage.promptTokens : 0));
    expect(used.reduce((sum, each) => sum + each)).toBe(40);
  });

  it.each([
    ["decides on a retry", 1],
    ["corrects the code", 2],
    ["reflects on the output", 3],
  ])("rolls back a turn that fails while the model %s", async (_, call) => {
    const answers: ScriptedAnswer[] = [python("a"), retry(true), python("b"), "Done."];
    const error = new Error("model gone");
    answers[call] = () => Promise.reject(error);
    const { agent, modelClient } = writer([...answers.slice(0, call + 1), "Again."], [failure], {
      maxRetriesOnError: 1,
    });
    await expect(agent.onMessages(task)).rejects.toBe(error);
    expect((await agent.onMessages(task)).chatMessage.content).toBe("Again.");
    expect(modelClient.requests.at(-1)?.messages).toHaveLength(2);
  });

  it.each(['"true"', '"True"', '"yes"'])("retries when the model answers %s", async (answer) => {
    const answers = [python("a"), `{"reason": "a typo", "retry": ${answer}}`, python("b"), "Done."];
    const { agent, codeExecutor } = writer(answers, [failure], { maxRetriesOnError: 1 });
    await agent.onMessages([textMessage({ source: "user", content: "x" })]);
    expect(codeExecutor.given).toHaveLength(2);
  });

  it("stops retrying when the limit is reached", async () => {
    const answers = [python("a"), retry(true), python("b"), "Gave up."];
    const { agent, codeExecutor } = writer(answers, [failure, failure], { maxRetriesOnError: 1 });
    expect((await agent.onMessages(task)).chatMessage.content).toBe("Gave up.");
    expect(codeExecutor.given).toHaveLength(2);
  });

  it("stops retrying when the model decides not to", async () => {
    const { agent, codeExecutor } = writer([python("a"), retry(false, "no data"), "No data."], [failure], {
      maxRetriesOnError: 3,
    });
    const { chatMessage, innerMessages } = await agent.onMessages(task);
    expect(chatMessage.content).toBe("No data.");
    expect(innerMessages.at(-1)).toMatchObject({ type: "ThoughtEvent", content: "no data" });
    expect(codeExecutor.given).toHaveLength(1);
  });

  it("reads the decision from plain text if the model has no structured output", async () => {
    const answers = [python("a"), `No {name} there. So: ${retry(true)}`, python("b"), "Done."];
    const { agent, modelClient, codeExecutor } = writer(answers, [failure], {
      maxRetriesOnError: 1,
      model: { structuredOutput: false },
    });
    await agent.onMessages(task);
    expect(codeExecutor.given).toHaveLength(2);
    expect(modelClient.requests[1]?.options.jsonSchema).toBeUndefined();
  });

  it("does not retry if it cannot parse the decision", async () => {
    const { agent, codeExecutor } = writer([python("a"), "dunno", "Failed."], [failure], { maxRetriesOnError: 1 });
    expect((await agent.onMessages(task)).chatMessage.content).toBe("Failed.");
    expect(codeExecutor.given).toHaveLength(1);
  });

  it("does not retry if the client could not parse the decision", async () => {
    const unreadable = new ModelClientError("The model sent no JSON", { remedy: "Try again." });
    const answers = [python("a"), () => Promise.reject(unreadable), "Failed."];
    const { agent } = writer(answers, [failure], { maxRetriesOnError: 1 });
    const { chatMessage, innerMessages } = await agent.onMessages(task);
    expect(chatMessage.content).toBe("Failed.");
    expect(innerMessages.at(-1)).toMatchObject({ type: "ThoughtEvent", content: unreadable.message });
  });

  it("tells the model why code was refused", async () => {
    const verdicts = [
      { approved: false, reason: "no network" },
      { approved: true, reason: "" },
    ];
    const answers = [python("get()"), retry(true), python("local()"), "Done."];
    const { agent, modelClient, codeExecutor } = writer(answers, [], {
      maxRetriesOnError: 1,
      approvalFunc: () => verdicts.shift() ?? { approved: false, reason: "" },
    });
    const { innerMessages } = await agent.onMessages(task);
    expect(codeExecutor.given).toHaveLength(1);
    expect(innerMessages[1]).toMatchObject({ type: "CodeExecutionEvent", result: { exitCode: 1 } });
    expect(modelClient.requests[1]?.messages.at(-2)?.content).toBe(
      "The code was not run, because it was not approved. Reason: no network",
    );
  });

  it("streams the code before its CodeGenerationEvent", async () => {
    const { agent } = writer(["```python\nprint(7)\n```", "Seven it is."], [], { modelClientStream: true });
    const items = await collect(agent.onMessagesStream(task));
    const kinds = types(items).filter((type, index, all) => type !== all[index - 1]);
    const chunk = "ModelClientStreamingChunkEvent";
    expect(kinds).toEqual([chunk, "CodeGenerationEvent", "CodeExecutionEvent", chunk, "end"]);
    const generated = items.find((item) => "type" in item && item.type === "CodeGenerationEvent");
    expect(items[0]).toMatchObject({ fullMessageId: generated !== undefined && "id" in generated ? generated.id : "" });
    const last = items.at(-1);
    expect(last !== undefined && "innerMessages" in last && types(last.innerMessages)).toEqual([
      "CodeGenerationEvent",
      "CodeExecutionEvent",
    ]);
  });

  it("shows plots to a model with vision, and includes them in the answer", async () => {
    const displays = [{ data: { "image/png": new Uint8Array([1, 2, 3]) }, files: ["/work/plot.png"] }];
    const result = codeResult({ output: "plotted\n", displays });
    const image = { type: "image", url: "data:image/png;base64,AQID", path: "/work/plot.png" };
    const seeing = writer([python("plot()"), "Nice."], [result], { model: { vision: true } });
    const { chatMessage, innerMessages } = await seeing.agent.onMessages(task);
    expect(chatMessage).toMatchObject({
      type: "MultiModalMessage",
      content: [{ type: "text", text: "Nice.\n\nSaved files:\nplot.png" }, image],
    });
    expect(seeing.modelClient.requests[1]?.messages.at(-2)?.content).toMatchObject([{ type: "text" }, image]);
    expect(throughJson(innerMessages[1] ?? {})).toEqual(innerMessages[1]);

    const blind = writer([python("plot()"), "Nice."], [result]);
    expect((await blind.agent.onMessages(task)).chatMessage).toMatchObject({
      type: "TextMessage",
      content: "Nice.\n\nSaved files:\nplot.png",
    });
    expect(blind.modelClient.requests[1]?.messages.at(-2)?.content).toContain("[image: /work/plot.png]");
  });

  it("restores its memory from JSON and clears it on reset", async () => {
    const { agent } = writer([python("a"), "Done."], []);
    await agent.onMessages(task);
    const state: JsonObject = throughJson(await agent.saveState());
    const other = writer(["Again."], []);
    await other.agent.loadState(state);
    await other.agent.onMessages([]);
    expect(other.modelClient.requests[0]?.messages).toHaveLength(5);
    await agent.reset();
    expect(await agent.saveState()).toEqual({ modelContext: { messages: [] } });
  });

  it("rolls back an aborted turn", async () => {
    const controller = new AbortController();
    const first = writer([never(() => controller.abort("stop"))], []);
    await expect(first.agent.onMessages(task, { signal: controller.signal })).rejects.toBe("stop");
    expect(await first.agent.saveState()).toEqual({ modelContext: { messages: [] } });

    const second = writer([python("loop()")], ["hang"]);
    const other = new AbortController();
    second.codeExecutor.onRun = () => other.abort("stop");
    await expect(second.agent.onMessages(task, { signal: other.signal })).rejects.toBe("stop");
    expect(second.codeExecutor.running).toBe(0);
    expect(await second.agent.saveState()).toEqual({ modelContext: { messages: [] } });
  });
});
