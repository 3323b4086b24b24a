import assert from "node:assert/strict";
import type { CodeBlock, CodeResult } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceGroup } from "../conformance-case.ts";
import { knowsUsage, language } from "../needs.ts";
import { PlayedHost } from "../observe/play-host.ts";
import { fetching, inPython, policy } from "./network-credentials.ts";

const python = (code: string): CodeBlock => ({ language: "python", code });
/** Uses the processor for so many seconds, which waits and other programs do not add to. */
const burning = (seconds: number): CodeBlock =>
  python(`import time\nuntil = time.process_time() + ${seconds}\nwhile time.process_time() < until: pass\n`);
/** Uses it until it is ended, and says how much, in milliseconds. */
const endless = python(`
import time
began = said = time.process_time()
while True:
    now = time.process_time()
    if now - said > 0.05:
        said = now
        print(int((now - began) * 1000), flush=True)
`);
/** Writes to 64 MiB. */
const holding = python("held = bytearray(b'x') * (64 << 20)\ndel held\n");
const nothing = python("pass");

/** The processor time that a result says, which is that of the program, or more. */
function processorMs(kit: CaseContext, { usage }: CodeResult, least: number): number {
  assert.ok(usage?.processorMs !== undefined, `usage is ${JSON.stringify(usage)}`);
  // In WebAssembly, a program's clock of processor time is one of time.
  const known = kit.capabilities.isolation === "wasm" ? Math.min(least, 1) : least;
  assert.ok(usage.processorMs >= known, `${usage.processorMs} ms of ${least}`);
  return usage.processorMs;
}

/** `result.usage`. */
export const runUsage: ConformanceGroup = {
  name: "usage of runs",
  cases: [
    {
      name: "has the processor time of all blocks together, and nothing of other runs",
      needs: [language("python"), knowsUsage("processorMs")],
      async run(kit) {
        const executor = await kit.create();
        const both = await executor.executeCodeBlocks([burning(0.5), burning(0.5)]);
        assert.equal(both.exitCode, 0, both.output);
        const ran = processorMs(kit, both, 1000);
        const next = processorMs(kit, await kit.succeed(executor, nothing), 0);
        assert.ok(next < ran, `${next} ms after ${ran} ms`);
      },
    },
    {
      name: "has the memory of the largest process, and nothing of other runs",
      needs: [language("python"), knowsUsage("peakMemoryBytes")],
      async run(kit) {
        const executor = await kit.create();
        const { usage } = await executor.executeCodeBlocks([holding, holding]);
        const peak = usage?.peakMemoryBytes ?? 0;
        assert.ok(peak >= 64 << 20 && peak < 128 << 20, `${peak} bytes`);
        const { usage: next } = await kit.succeed(executor, nothing);
        assert.ok((next?.peakMemoryBytes ?? 0) > 0 && (next?.peakMemoryBytes ?? 0) < 64 << 20, JSON.stringify(next));
      },
    },
    {
      name: "is there for a run that timed out, and for one that was submitted",
      needs: [language("python"), knowsUsage("processorMs")],
      async run(kit) {
        const executor = await kit.create();
        const result = await executor.executeCodeBlocks([endless], { timeoutMs: 3000 });
        assert.equal(result.timedOut, true);
        processorMs(kit, result, Number(result.stdout.trim().split("\n").at(-1)));
        const run = await executor.submit([burning(0.2)]);
        processorMs(kit, await kit.within("the result", run.result()), 200);
      },
    },
    {
      name: "has the bytes that the network policy's proxy relayed",
      needs: inPython,
      async run(kit) {
        const content = "x".repeat(200_000);
        await using host = await PlayedHost.http((request, response) => {
          request.resume().once("end", () => response.end(content));
        });
        const executor = await kit.create({ network: policy() });
        const fetched = await kit.succeed(executor, python(fetching(`http://good.example:${host.port}/page`)));
        const knows = executor.capabilities.usage?.includes("receivedBytes") === true;
        assert.equal(fetched.usage?.receivedBytes !== undefined, knows);
        assert.equal(fetched.usage?.sentBytes !== undefined, knows);
        if (!knows) return;
        const { receivedBytes = 0, sentBytes = 0 } = fetched.usage ?? {};
        assert.ok(receivedBytes >= content.length && sentBytes >= "GET /page".length, JSON.stringify(fetched.usage));
        const { usage } = await kit.succeed(executor, nothing);
        assert.deepEqual([usage?.receivedBytes, usage?.sentBytes], [0, 0]);
      },
    },
  ],
};
