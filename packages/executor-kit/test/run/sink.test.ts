import { setTimeout as sleep } from "node:timers/promises";
import type { CodeBlock, ExecutionEvent } from "@fenced/core";
import type { BlockOutcome, BlockRun, Sink } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";
import { say, ScriptedExecutor } from "../support/scripted-executor.ts";

/** The events of blocks that a script runs, as far as a test reads them. */
function eventsOf(
  run: (block: BlockRun, sink: Sink) => Promise<BlockOutcome>,
  ...blocks: readonly CodeBlock[]
): AsyncIterator<ExecutionEvent> {
  return new ScriptedExecutor({ run }).streamCodeBlocks(blocks.length > 0 ? blocks : [say("")])[Symbol.asyncIterator]();
}

async function textOf(iterator: AsyncIterator<ExecutionEvent>): Promise<string> {
  let text = "";
  for (let step = await iterator.next(); step.done !== true; step = await iterator.next()) {
    if (step.value.type === "stdout") text += step.value.text;
  }
  return text;
}

/** Writes pieces until it has to wait, and then the rest; notes how many it could write at once. */
const flood =
  (piece: string, count: number, noted: { atOnce?: number }) =>
  async (_: BlockRun, sink: Sink): Promise<BlockOutcome> => {
    for (let done = 1; done <= count; done += 1) {
      const room = sink.write({ type: "stdout", data: piece });
      if (!room) continue;
      noted.atOnce ??= done;
      await room;
    }
    return { exitCode: 0 };
  };

describe("a sink", () => {
  it.each([
    ["pieces of 64 KiB", "x".repeat(65_536), 100, 4],
    ["pieces of one byte, each of which takes memory besides its text", "x", 5000, 2000],
  ])("makes a program wait when 256 KiB wait for the consumer: %s", async (_, piece, count, most) => {
    const noted: { atOnce?: number } = {};
    const events = eventsOf(flood(piece, count, noted));
    await events.next();
    const first = await events.next();
    await sleep(10);
    expect(noted.atOnce).toBeGreaterThan(most / 2);
    expect(noted.atOnce).toBeLessThanOrEqual(most + 50);
    expect(first.value).toMatchObject({ type: "stdout", text: piece });
    expect((await textOf(events)).length).toBe(piece.length * (count - 1));
  });

  it("joins what a program writes that cannot wait, so that its reader is not slower the more there is", async () => {
    const count = 300_000;
    const run = async (_: BlockRun, sink: Sink): Promise<BlockOutcome> => {
      for (let done = 0; done < count; done += 1) void sink.write({ type: "stdout", data: "x" });
      return { exitCode: 0 };
    };
    let [events, characters] = [0, 0];
    for await (const event of new ScriptedExecutor({ run }).streamCodeBlocks([say("")])) {
      events += 1;
      if (event.type === "stdout") characters += event.text.length;
    }
    expect(characters).toBe(count);
    expect(events).toBeLessThan(3000);
  });

  it("never makes a program wait whose events nobody reads", async () => {
    const noted: { atOnce?: number } = {};
    const executor = new ScriptedExecutor({ run: flood("x".repeat(65_536), 100, noted) });
    expect(await executor.executeCodeBlocks([say("")])).toMatchObject({ exitCode: 0, truncated: true });
    expect(noted).toEqual({});
  });

  it("takes bytes at once, whenever they are read", async () => {
    const run = async (_: BlockRun, sink: Sink): Promise<BlockOutcome> => {
      const reused = Buffer.from("0");
      for (let digit = 0; digit < 10; digit += 1) void sink.write({ type: "stdout", data: reused.fill(String(digit)) });
      reused.fill("x");
      return Promise.resolve({ exitCode: 0 });
    };
    const events = eventsOf(run);
    await events.next();
    await sleep(5);
    expect(await textOf(events)).toBe("0123456789");
    expect(await new ScriptedExecutor({ run }).executeCodeBlocks([say("")])).toMatchObject({ output: "0123456789" });
  });

  it("drops what is written after the block has ended", async () => {
    let late: Sink | undefined;
    const run = async ({ code }: BlockRun, sink: Sink): Promise<BlockOutcome> => {
      void late?.write({ type: "stdout", data: "too late" });
      late ??= sink;
      void sink.write({ type: "stdout", data: code });
      return Promise.resolve({ exitCode: 0 });
    };
    expect(await textOf(eventsOf(run, say("a"), say("b")))).toBe("ab");
  });

  it("does not begin the next block before the consumer has seen the end of the one before", async () => {
    const ran: string[] = [];
    const events = eventsOf(
      ({ code }) => {
        ran.push(code);
        return Promise.resolve({ exitCode: 0 });
      },
      say("a"),
      say("b"),
    );
    for (const type of ["block-start", "block-end"]) expect((await events.next()).value).toMatchObject({ type });
    await sleep(5);
    expect(ran).toEqual(["a"]);
    await events.return?.();
    expect(ran).toEqual(["a"]);
  });
});
