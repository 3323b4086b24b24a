// Counts the tokens of 20 tool calls: sequential, parallel, and from code. The model's answers are scripted.
// needs: python3
import assert from "node:assert/strict";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { codeExecutionTool } from "@fenced/ai-sdk";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { generateText, stepCountIs, tool, type ToolSet } from "ai";
import { Tiktoken } from "js-tiktoken/lite";
import o200kBase from "js-tiktoken/ranks/o200k_base";
import * as z from "zod";
import { startOpenAIServer } from "./support/model-server.ts";

const sensors = Array.from({ length: 20 }, (_, sensor) => sensor);
const answer = { text: "Sensor 19 had the highest average of the day, 21.9 degrees Celsius." };

/** One day of a sensor's data, as an API would return it. */
function readSensor({ sensor }: { sensor: number }) {
  const values = Array.from({ length: 24 }, (_, hour) => ({
    hour,
    celsius: 20 + sensor / 10 + (hour % 2 === 0 ? 0.5 : -0.5),
  }));
  return { sensor, unit: "celsius", values };
}

const tools = {
  read_sensor: tool({
    description: "The temperatures of a day at a sensor, hour by hour.",
    inputSchema: z.object({ sensor: z.int().min(0).max(19) }),
    outputSchema: z.object({
      sensor: z.int(),
      unit: z.string(),
      values: z.array(z.object({ hour: z.int(), celsius: z.number() })),
    }),
    execute: readSensor,
  }),
};

const code = `
from functions import read_sensor

averages = {}
for sensor in range(20):
    values = read_sensor(sensor=sensor)["values"]
    averages[sensor] = sum(value["celsius"] for value in values) / len(values)
hottest = max(averages, key=averages.get)
print(hottest, round(averages[hottest], 1))
`;

interface Call {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}
const calls = sensors.map((sensor): Call => ({
  id: `call-${sensor}`,
  name: "read_sensor",
  arguments: JSON.stringify({ sensor }),
}));
const codeCall: Call = { id: "call", name: "execute_code", arguments: JSON.stringify({ language: "python", code }) };

const tokenizer = new Tiktoken(o200kBase);
const counted = new Map<string, number>();
function countTokens(value: unknown): number {
  const text = JSON.stringify(value);
  const count = counted.get(text) ?? tokenizer.encode(text).length;
  counted.set(text, count);
  return count;
}

interface Cost {
  readonly requests: number;
  readonly input: number;
  readonly output: number;
}

/**
 * Runs the task and counts what was actually sent, with the tokenizer o200k_base. For each request, it counts the
 * messages and tool definitions as JSON, so earlier messages count each time they are sent again; for each answer, its
 * text or tool calls. A provider's own count differs somewhat, because it formats roles and tools differently. Savings
 * by its cache are not deducted.
 */
async function costOf(
  toolset: ToolSet,
  answers: readonly { toolCalls?: readonly Call[]; text?: string }[],
): Promise<Cost> {
  await using server = await startOpenAIServer(answers);
  const model = createOpenAICompatible({ name: "service", baseURL: server.baseURL })("recorded");
  const prompt = "Which of the sensors 0 to 19 had the highest average temperature?";
  const { text } = await generateText({ model, tools: toolset, stopWhen: stepCountIs(30), prompt });
  assert.equal(text, answer.text);
  const sent = server.requests.map(({ body }) => [...body.messages, ...(body.tools ?? [])]);
  return {
    requests: sent.length,
    input: sent.flat().reduce((sum, part) => sum + countTokens(part), 0),
    output: answers.reduce((sum, each) => sum + countTokens(each.toolCalls ?? each.text), 0),
  };
}

await using executor = new LocalCommandLineCodeExecutor();
await executor.start(); // so that the description of the tool is exact
const execute_code = codeExecutionTool(executor, { tools, languages: ["python"], imagesToModel: false });
const costs = {
  "one after another": await costOf(tools, [...calls.map((call) => ({ toolCalls: [call] })), answer]),
  "side by side": await costOf(tools, [{ toolCalls: calls }, answer]),
  "code mode": await costOf({ execute_code }, [{ toolCalls: [codeCall] }, answer]),
};
console.table(costs);

const total = ({ input, output }: Cost): number => input + output;
const [serial, parallel, fromCode] = [costs["one after another"], costs["side by side"], costs["code mode"]];
for (const [name, other] of [
  ["one after another", serial],
  ["side by side", parallel],
] as const) {
  const saved = 100 * (1 - total(fromCode) / total(other));
  console.log(`Code mode saves ${saved.toFixed(1)} % of the tokens of 20 calls ${name}.`);
}
assert.deepEqual([serial.requests, parallel.requests, fromCode.requests], [21, 2, 2]);
assert.ok(total(fromCode) < total(parallel) / 2 && total(parallel) < total(serial));
