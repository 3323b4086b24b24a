import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { StartedProcess } from "../../src/processes/started-process.ts";

it("holds single bytes that nobody reads as one piece of memory, and makes their program wait", async () => {
  let written = 0;
  const process = new StartedProcess(
    async (sink) => {
      for (; written < 270_000; written += 1) await sink.write({ type: "stdout", data: Uint8Array.of(written % 256) });
      return { exitCode: 0 };
    },
    { signal: new AbortController().signal },
  );
  const started = process.owner ?? process.open();
  let before = -1;
  while (written > before) {
    before = written;
    for (let count = 0; count < 100; count += 1) await turn();
  }
  expect(written).toBeLessThan(265_000);
  const lengths: number[] = [];
  let at = 0;
  for await (const chunk of started.stdout) {
    lengths.push(chunk.length);
    expect([chunk[0], chunk.at(-1)]).toEqual([at % 256, (at + chunk.length - 1) % 256]);
    at += chunk.length;
  }
  expect([lengths[0], at]).toEqual([262_144, 270_000]);
  expect(await started.wait()).toEqual({ exitCode: 0 });
});

it("closes both streams, and drops what a reader that left does not take", async () => {
  const process = new StartedProcess(
    async (sink) => {
      for (let count = 0; count < 100; count += 1) await sink.write({ type: "stderr", data: "x".repeat(10_000) });
      await sink.write({ type: "stdout", data: "end" });
      return { exitCode: 3 };
    },
    { signal: new AbortController().signal },
  );
  const started = process.owner ?? process.open();
  await started.stderr.cancel();
  const reader = started.stdout.getReader();
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe("end");
  expect(await reader.read()).toEqual({ done: true, value: undefined });
  expect(await started.wait()).toEqual({ exitCode: 3 });
});
