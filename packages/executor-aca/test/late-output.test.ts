import { setTimeout as sleep } from "node:timers/promises";
import type { CodeResult } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { run, Setting } from "./support.ts";

describe("a block that ended in time", needs("python3"), () => {
  it("does not time out and loses no output, however late the output is read", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ maxOutputBytes: 64_000_000 });
    await executor.start();
    const code = "for _ in range(256): print('x' * 65535)";
    let length = 0;
    let result: CodeResult | undefined;
    // How long the block takes depends on the machine. One whose reader counts never ends in time.
    for (let timeoutMs = 5000; result?.timedOut !== false && timeoutMs < 60_000; timeoutMs *= 2) {
      length = 0;
      for await (const event of executor.streamCodeBlocks([{ language: "python", code }], { timeoutMs })) {
        if (event.type === "stdout") {
          if (length === 0) await sleep(timeoutMs + 500);
          length += event.text.length;
        }
        if (event.type === "result") result = event.result;
      }
    }
    expect(result).toMatchObject({ exitCode: 0, timedOut: false, truncated: false, stateLost: false });
    expect(length).toBe(256 * 65_536);
  });

  it("does not time out if its log arrives late, and keeps its variables", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await executor.start();
    setting.emulator.provoke({ kind: "latency", milliseconds: 7000, on: "files", times: 1 });
    const code = "import sys; kept = 1; print('a'); print('b', file=sys.stderr); print('c')";
    const result = await run(executor, code, { timeoutMs: 6000 });
    expect(result).toMatchObject({ exitCode: 0, timedOut: false, output: "a\nb\nc\n", stateLost: false });
    expect((await run(executor, "print(kept)")).output).toBe("1\n");
  });

  it("returns the answer's output if its log never arrives", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await executor.start();
    setting.emulator.provoke({ kind: "latency", milliseconds: 120_000, on: "files", times: 1 });
    const code = "import sys; print('a'); print('b', file=sys.stderr); print('c')";
    const result = await run(executor, code, { timeoutMs: 6000 });
    expect(result).toMatchObject({ exitCode: 0, timedOut: false, stdout: "a\nc\n", stderr: "b\n" });
  });

  it("keeps its session if the caller aborts while its log is read", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor();
    await run(executor, "kept = 1");
    setting.emulator.provoke({ kind: "latency", milliseconds: 12_000, on: "files", times: 1 });
    const signal = AbortSignal.timeout(6000);
    const block = run(executor, "import sys; print('a'); print('b', file=sys.stderr)", { signal });
    await expect(block).rejects.toSatisfy((error) => error === signal.reason);
    expect(await run(executor, "print(kept)")).toMatchObject({ output: "1\n", stateLost: false });
  });
});
