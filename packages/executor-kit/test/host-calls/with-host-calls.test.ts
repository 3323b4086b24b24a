import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { BlockCalls } from "../../src/host-calls/block-calls.ts";
import { withHostCalls } from "../../src/host-calls/with-host-calls.ts";
import type { BlockEvent, BlockOutcome } from "../../src/run/block-run.ts";
import { ExecutorTelemetry } from "../../src/telemetry/executor-telemetry.ts";
import { ScriptedExecutor } from "../support/scripted-executor.ts";

it("withHostCalls keeps no memory for output that was read, even if the block calls nothing", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const calls = new BlockCalls({
    functions: new Map(),
    approve: undefined,
    maxCalls: 1,
    index: 0,
    signal: new AbortController().signal,
    telemetry: new ExecutorTelemetry(new ScriptedExecutor(), "test"),
  });
  const many = 50_000;
  async function* block(): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    for (let count = 0; count < many; count += 1) {
      if (count % 100 === 0) await turn();
      yield { type: "stdout", data: "x" };
    }
    return { exitCode: 0 };
  }
  collect();
  const before = process.memoryUsage().heapUsed;
  const events = withHostCalls(block(), calls, () => calls.close());
  for (let count = 0; count < many; count += 1) await events.next();
  collect();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(many * 100);
  expect(await events.next()).toEqual({ done: true, value: { exitCode: 0 } });
});
