import { describe, expect, it } from "vitest";
import * as z from "zod";
import { AssistantAgent, type AssistantAgentOptions, textMessage } from "../../src/index.ts";
import { type ScriptedAnswer, ScriptedModel } from "../support/scripted-model.ts";
import { throughJson } from "../support/through-json.ts";

function assistant(
  answers: readonly ScriptedAnswer[],
  options: Partial<AssistantAgentOptions> = {},
): { agent: AssistantAgent; modelClient: ScriptedModel } {
  const modelClient = new ScriptedModel(answers);
  return { modelClient, agent: new AssistantAgent({ name: "helper", modelClient, ...options }) };
}

const hello = [textMessage({ source: "user", content: "hello" })];
const jsonObject = z.record(z.string(), z.json());

describe("AssistantAgent with an output schema", () => {
  const outputSchema = z.object({ answer: z.number() });

  it("answers with a StructuredMessage", async () => {
    const { agent, modelClient } = assistant(['{"answer": 42}'], { outputSchema });
    const { chatMessage } = await agent.onMessages(hello);
    expect(chatMessage).toMatchObject({ type: "StructuredMessage", content: { answer: 42 } });
    expect(modelClient.requests[0]?.options.jsonSchema).toMatchObject({ required: ["answer"] });
  });

  it("puts the schema in the prompt if the model has no structured output", async () => {
    const modelClient = new ScriptedModel(['Here:\n```json\n{"answer": 42}\n```'], { structuredOutput: false });
    const agent = new AssistantAgent({ name: "a", modelClient, outputSchema });
    expect((await agent.onMessages(hello)).chatMessage.content).toEqual({ answer: 42 });
    expect(modelClient.requests[0]?.options.jsonSchema).toBeUndefined();
    expect(modelClient.requests[0]?.messages[1]?.content).toContain('"required":["answer"]');
  });

  it("rejects an answer that does not match the schema, and forgets the turn", async () => {
    const { agent, modelClient } = assistant(['{"answer": "x"}', "no", '{"answer": 1}'], { outputSchema });
    await expect(agent.onMessages(hello)).rejects.toThrow("does not match the schema");
    await expect(agent.onMessages(hello)).rejects.toThrow("is not JSON");
    await agent.onMessages(hello);
    expect(modelClient.requests[2]?.messages).toHaveLength(2);
  });

  it.each([
    ["prose with brackets", 'As {asked} in [1]: {"answer": 42}', outputSchema, { answer: 42 }],
    ["a list of one", '```json\n[{"answer": 42}]\n```', z.array(outputSchema), [{ answer: 42 }]],
    ["a list after prose", 'See [1] and {this}: [{"answer": 42}].', z.array(outputSchema), [{ answer: 42 }]],
    ["a JSON Schema", "The list [1]: {}", { type: "object" }, {}],
  ])("finds the data in an answer with text around it: %s", async (_, answer, schema, content) => {
    const { agent } = assistant([answer], { outputSchema: schema });
    expect((await agent.onMessages(hello)).chatMessage).toMatchObject({ type: "StructuredMessage", content });
  });

  it("checks answers against a JSON Schema, as in an agent that was dumped and loaded", async () => {
    const { agent } = assistant([], { outputSchema });
    const schema = jsonObject.parse(throughJson(agent.dumpComponent().config)["outputSchema"]);
    const loaded = assistant(['{"answer": "x"}', '{"answer": 1}'], { outputSchema: schema }).agent;
    await expect(loaded.onMessages(hello)).rejects.toThrow("does not match the schema");
    expect((await loaded.onMessages(hello)).chatMessage.content).toEqual({ answer: 1 });
  });
});
