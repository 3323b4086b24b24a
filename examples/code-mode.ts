// Lets an AI SDK model call its tools from code: one program makes 20 calls, and a person approves the important ones.
// needs: python3
import assert from "node:assert/strict";
// #region code-mode
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { codeExecutionTool } from "@fenced/ai-sdk";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { generateText, stepCountIs, tool } from "ai";
import * as z from "zod";
// #endregion
import { startOpenAIServer } from "./support/model-server.ts";

const code = `
import asyncio
from functions import read_sensor, set_alarm

async def main():
    values = await asyncio.gather(*[read_sensor.aio(sensor=number) for number in range(20)])
    hottest = values.index(max(values))
    print(hottest, max(values), set_alarm(sensor=hottest))

asyncio.run(main())
`;
await using server = await startOpenAIServer([
  { toolCalls: [{ id: "call-1", name: "execute_code", arguments: JSON.stringify({ language: "python", code }) }] },
  { text: "Sensor 19 is the hottest, with 21.9 degrees; its alarm is set." },
]);
Object.assign(process.env, { OPENAI_BASE_URL: server.baseURL });
const asked: string[] = [];
const { log } = console;
console.log = (line: string) => {
  asked.push(line);
  log(line);
};

// #region code-mode
const tools = {
  "read-sensor": tool({
    description: "The temperature at a sensor, in degrees Celsius.",
    inputSchema: z.object({ sensor: z.int().min(0).max(19) }),
    outputSchema: z.number(),
    execute: ({ sensor }) => 20 + sensor / 10,
  }),
  "set-alarm": tool({
    description: "Sets the alarm of a sensor.",
    inputSchema: z.object({ sensor: z.int() }),
    needsApproval: true,
    execute: ({ sensor }) => `alarm ${sensor} is set`,
  }),
};

const baseURL = process.env["OPENAI_BASE_URL"] ?? "http://localhost:11434/v1";
const service = createOpenAICompatible({ name: "service", baseURL });
await using executor = new LocalCommandLineCodeExecutor();
const executeCode = codeExecutionTool(executor, {
  tools, // the code calls them as functions: read_sensor(sensor=3)
  approveHostCall: ({ name, input, needsApproval }) => {
    if (needsApproval) console.log(`${name} is called with ${JSON.stringify(input)}`);
    return { approved: true }; // or ask someone: the program waits
  },
  imagesToModel: false,
});
const { text } = await generateText({
  model: service("qwen3"),
  tools: { execute_code: executeCode },
  stopWhen: stepCountIs(5),
  prompt: "Set the alarm of the hottest sensor.",
});
console.log(text);
// #endregion

assert.deepEqual(asked, ['set_alarm is called with {"sensor":19}', text]);
const told = server.requests[1]?.body.messages.findLast(({ role }) => role === "tool");
assert.equal(told?.content, "19 21.9 alarm 19 is set\n");
