// Gives code the tools of the Vercel AI SDK as functions: twenty calls side by side, and the model sees one result.
// needs: python3
import assert from "node:assert/strict";
// #region code-mode
import { setTimeout as sleep } from "node:timers/promises";
import { hostFunctionsFrom } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { tool } from "ai";
import * as z from "zod";

const tools = {
  "read-sensor": tool({
    description: "The temperature at a sensor, in degrees Celsius.",
    inputSchema: z.object({ sensor: z.int().min(0).max(19) }),
    outputSchema: z.number(),
    execute: async ({ sensor }) => {
      await sleep(50);
      return 20 + sensor / 10;
    },
  }),
};

await using executor = new LocalCommandLineCodeExecutor({ functions: hostFunctionsFrom(tools) });
const code = `
import asyncio
from functions import read_sensor

async def main():
    values = await asyncio.gather(*[read_sensor.aio(sensor=number) for number in range(20)])
    print(max(values))

asyncio.run(main())
`;
for await (const event of executor.streamCodeBlocks([{ language: "python", code }])) {
  if (event.type === "host-result") console.log(`${event.name}: ${JSON.stringify(event.output)}`);
  if (event.type === "result") console.log(event.result.output); // 21.9
}
// #endregion

const { output } = await executor.executeCodeBlocks([{ language: "python", code }]);
assert.equal(output, "21.9\n");
