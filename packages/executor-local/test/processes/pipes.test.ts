import { setTimeout as sleep } from "node:timers/promises";
import type { CodeResult } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { executorWith, run } from "../support/local-executor.ts";

describe("streams", needs("bash"), () => {
  it("can be opened again by name, as programs at a terminal do", async () => {
    const code = "echo out > /dev/stdout; echo err > /dev/stderr; cat /dev/stdin";
    const result = await executorWith().executeCodeBlocks([{ language: "bash", code }], { stdin: "in\n" });
    expect(result).toMatchObject({ exitCode: 0, stderr: "err\n", stdout: "out\nin\n" });
  });

  it("are complete even if a child still holds them open", async () => {
    const code = "head -c 60000 /dev/zero | tr '\\0' x; sleep 1000 & echo; echo end";
    const result = await run({}, "bash", code);
    expect(result.stdout.length).toBe(60_005);
    expect(result.stdout.endsWith("\nend\n")).toBe(true);
  });

  it("of a process that a block left running still accept what it writes", async () => {
    const executor = executorWith();
    const log = "( while :; do echo line || echo broken > failed; echo beat >> beats; sleep 0.02; done ) &";
    await executor.executeCodeBlocks([{ language: "bash", code: log }]);
    const beats = async (): Promise<number> => (await executor.files.read("beats").catch(() => [])).length;
    const before = await beats();
    await expect.poll(beats, { timeout: 60_000 }).toBeGreaterThan(before + 100);
    expect((await executor.files.list()).map((file) => file.path)).toEqual(["beats"]);
  });

  it("do not block a process that a block left running and that writes a lot", async () => {
    const flood = "( yes 0123456789 | head -c 10000000; touch done ) &";
    const executor = executorWith();
    await executor.executeCodeBlocks([{ language: "bash", code: flood }]);
    const files = async (): Promise<string[]> => (await executor.files.list()).map((file) => file.path);
    await expect.poll(files, { timeout: 60_000 }).toEqual(["done"]);
  });

  it("are pipes for any number of blocks at once", async () => {
    const executor = executorWith();
    const blocks = [{ language: "sh", code: "echo > /dev/stderr" }];
    const runs = Array.from({ length: 60 }, async () => executor.executeCodeBlocks(blocks));
    expect((await Promise.all(runs)).map((result) => result.output)).toEqual(runs.map(() => "\n"));
  });

  it("work even after a block has removed or replaced the pipes made in advance", async () => {
    const executor = executorWith();
    const spoil = "[ -p ../pipe-0 ] && rm -f ../pipe-*";
    const replace = "for pipe in ../pipe-*; do rm $pipe; touch $pipe; done";
    for (const code of [spoil, "echo > /dev/stderr", replace, "echo > /dev/stderr"]) {
      expect(await executor.executeCodeBlocks([{ language: "sh", code }])).toMatchObject({ exitCode: 0 });
    }
  });

  it("of a program that ended in time can be read later, without a timeout", async () => {
    const executor = executorWith();
    const code = "( while :; do echo >> beats; sleep 0.02; done ) > /dev/null & head -c 60000 /dev/zero";
    const runWithin = async (timeoutMs: number) => {
      const texts: string[] = [];
      let result: CodeResult | undefined;
      for await (const event of executor.streamCodeBlocks([{ language: "bash", code }], { timeoutMs })) {
        if (event.type === "stdout" && texts.length === 0) await sleep(timeoutMs + 500);
        if (event.type === "stdout") texts.push(event.text);
        if (event.type === "result") ({ result } = event);
      }
      return { timeoutMs, result, text: texts.join("") };
    };
    // How long the block takes depends on the machine. One whose reader counts never ends in time.
    let ended = await runWithin(2000);
    while (ended.result?.timedOut === true && ended.timeoutMs < 30_000) ended = await runWithin(2 * ended.timeoutMs);
    const { timeoutMs, result, text } = ended;
    expect(result).toMatchObject({ exitCode: 0, timedOut: false });
    expect(result?.blocks[0]?.durationMs).toBeLessThan(timeoutMs);
    expect(text.length).toBe(60_000);
    const beats = async (): Promise<number> => (await executor.files.read("beats")).length;
    const before = await beats();
    await expect.poll(beats, { timeout: 60_000 }).toBeGreaterThan(before);
  });

  it("of a program that a signal ends come with its exit code", async () => {
    expect(await run({}, "bash", "kill -SEGV $$")).toMatchObject({ exitCode: 139 });
  });
});
