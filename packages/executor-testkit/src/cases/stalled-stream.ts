import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { ExecutorStoppedError, type CodeExecutor, type ExecuteOptions, type ExecutionEvent } from "@fenced/core";
import { beatingChild } from "../beating-child.ts";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { live, processes } from "../needs.ts";
import { assertRejectsWith } from "../observe/assert-rejects-with.ts";
import { assertDead, workspaceHeartbeat } from "../observe/heartbeat.ts";
import { MemoryWatch } from "../observe/memory-watch.ts";
import { withDoubledTime, withEnoughTime } from "../observe/until-running.ts";
import { passes } from "../observe/within.ts";

const mebibyte = 1024 * 1024;
const floods = 4096;
const needs = [live, processes];

const endedBy = (method: "stop" | "restart"): ConformanceCase => ({
  name: `does not keep ${method}() from ending`,
  needs,
  async run(kit) {
    const executor = await kit.create();
    const iterator = await stall(kit, executor);
    await kit.within(`${method}() although nobody reads`, executor[method]());
    await kit.rejects(ExecutorStoppedError, "the rest of the stream", lastOf(iterator));
    await kit.within("start()", executor.start());
    await kit.succeedWith(executor, kit.language.print("next"));
  },
});

/** A consumer that has stopped reading. The program waits, but time limits, aborts and stops still work. */
export const stalledStream: ConformanceGroup = {
  name: "stream that nobody reads",
  waits: true,
  cases: [
    {
      name: "pauses the program and buffers little of its output",
      needs,
      alone: true,
      async run(kit) {
        const executor = await kit.create();
        using memory = new MemoryWatch();
        const iterator = await stall(kit, executor);
        const written = workspaceHeartbeat(executor, "written");
        let before = -1;
        const stalledAt = await kit.eventually("the program stalls while nobody reads its output", async () => {
          const now = (await written.count()) ?? 0;
          await sleep(1000);
          if (now === before) return now;
          before = now;
          return undefined;
        });
        assert.ok(stalledAt < floods / 4, `it wrote ${stalledAt * 64} KiB although nobody read them`);
        const held = memory.peak() / mebibyte;
        assert.ok(held < 32, `this process held ${held.toFixed(1)} MiB for a consumer that does not read`);
        await kit.within("leaving the stream", Promise.resolve(iterator.return?.()));
        await assertDead(kit, executor, beats(kit));
      },
    },
    {
      name: "continues without loss when the consumer reads again",
      needs,
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        let length = 0;
        let pauses = 0;
        const reading = (async () => {
          for await (const event of executor.streamCodeBlocks([language.program(language.flood("written", 256))])) {
            if (event.type !== "stdout") continue;
            length += event.text.length;
            if (pauses++ < 5) await sleep(200);
          }
        })();
        await kit.within("the slow consumer", reading);
        assert.equal(length, 256 * 65_536);
      },
    },
    {
      name: "ends at the block's time limit",
      needs,
      async run(kit) {
        const { executor, iterator } = await withEnoughTime(
          kit,
          async (timeoutMs) => {
            const limited = await kit.create({ timeoutMs });
            const events = flood(kit, limited);
            await kit.within("the first output", readFirstOutput(events));
            return { executor: limited, iterator: events };
          },
          "written",
        );
        await kit.eventually("time is up although nobody reads", () => passes(assertDead(kit, executor, beats(kit))));
        const last = await kit.within("the rest of the stream", lastOf(iterator));
        assert.ok(last?.type === "result" && last.result.timedOut);
        await assertDead(kit, executor, beats(kit));
      },
    },
    {
      name: "does not make a program time out that has ended in time",
      needs: [live],
      async run(kit) {
        const { language } = kit;
        const program = language.program(language.flood("written", 5));
        const { result, executor } = await withDoubledTime(kit, 2000, async (timeoutMs) => {
          const made = await kit.create({ timeoutMs });
          await made.start();
          const iterator = made.streamCodeBlocks([program])[Symbol.asyncIterator]();
          await kit.within("the first output", readFirstOutput(iterator));
          // Longer than the limit, so that a program whose reader counts never ends in time.
          await sleep(timeoutMs);
          const last = await kit.within("the rest of the stream", lastOf(iterator));
          assert.ok(last?.type === "result");
          return { wasEnough: !last.result.timedOut, result: last.result, executor: made };
        });
        assert.deepEqual([result.exitCode, result.timedOut], [0, false]);
        await kit.succeed(executor, language.program(language.print("next")), { timeoutMs: kit.patienceMs });
      },
    },
    {
      name: "ends when it is aborted",
      needs,
      async run(kit) {
        const executor = await kit.shared();
        const controller = new AbortController();
        const iterator = await stall(kit, executor, { signal: controller.signal });
        controller.abort();
        await kit.eventually("everything dies although nobody reads", () =>
          passes(assertDead(kit, executor, beats(kit))),
        );
        await assertRejectsWith(kit, lastOf(iterator), controller.signal.reason);
        await assertDead(kit, executor, beats(kit));
      },
    },
    endedBy("stop"),
    endedBy("restart"),
    {
      name: "does not keep other calls waiting",
      needs,
      async run(kit) {
        const executor = await kit.shared();
        const iterator = await stall(kit, executor);
        await kit.succeedWith(executor, kit.language.print("next"));
        await kit.within("leaving the stream", Promise.resolve(iterator.return?.()));
      },
    },
  ],
};

/** Starts a program that writes endlessly and a child that beats; reads the first output and then stops reading. */
async function stall(
  kit: CaseContext,
  executor: CodeExecutor,
  options?: ExecuteOptions,
): Promise<AsyncIterator<ExecutionEvent>> {
  const iterator = flood(kit, executor, options);
  assert.ok(await kit.within("the first output", readFirstOutput(iterator)), "the stream ended without output");
  return iterator;
}

function flood(kit: CaseContext, executor: CodeExecutor, options?: ExecuteOptions): AsyncIterator<ExecutionEvent> {
  const { language } = kit;
  const program = language.program(...beatingChild(kit).statements, language.flood("written", floods));
  return executor.streamCodeBlocks([program], options)[Symbol.asyncIterator]();
}

/** The file that shows that the program is alive: its child's or, without a child, its own. */
function beats(kit: CaseContext): string {
  return beatingChild(kit).files[0] ?? "written";
}

/** Returns whether there was any output before the end. */
async function readFirstOutput(iterator: AsyncIterator<ExecutionEvent>): Promise<boolean> {
  for (;;) {
    const step = await iterator.next();
    if (step.done === true) return false;
    if (step.value.type === "stdout") return true;
  }
}

async function lastOf(iterator: AsyncIterator<ExecutionEvent>): Promise<ExecutionEvent | undefined> {
  let last: ExecutionEvent | undefined;
  for (;;) {
    const step = await iterator.next();
    if (step.done === true) return last;
    last = step.value;
  }
}
