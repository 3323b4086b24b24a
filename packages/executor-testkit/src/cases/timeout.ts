import assert from "node:assert/strict";
import { InvalidInputError, type CodeBlock, type CodeExecutor, type CodeResult } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { childKinds, type ChildKind } from "../languages/fixture-language.ts";
import { childKind, processes, startsProcesses } from "../needs.ts";
import { followStream, streamedText } from "../observe/follow-stream.ts";
import { assertBeats, assertDead, workspaceHeartbeat } from "../observe/heartbeat.ts";
import { startWaiting, withDoubledTime, withEnoughTime } from "../observe/until-running.ts";
import { settledKind } from "../settled-kind.ts";

const endsChild = (kind: ChildKind): ConformanceCase => ({
  name: `ends a process that the block started (${kind})`,
  needs: [childKind(kind)],
  async run(kit) {
    const { language } = kit;
    const program = language.program(
      language.spawnBeating("child", kind),
      language.print("started"),
      language.beat("main"),
    );
    const { executor, result } = await runIntoLimit(kit, program);
    assert.equal(result.stdout, "started\n");
    await assertDead(kit, executor, "main", "child");
  },
});

const wholeCall: readonly ConformanceCase[] = [
  {
    name: "totalTimeoutMs ends the call and keeps the results so far",
    async run(kit) {
      const { language } = kit;
      const blocks = [
        language.program(language.print("before")),
        language.program(language.print("started"), language.beat("main")),
        language.program(language.writeFile("after.txt", "ran")),
      ];
      const { executor, result } = await withEnoughTime(kit, async (totalTimeoutMs) => {
        const limited = await kit.create({ totalTimeoutMs });
        await limited.start();
        return { executor: limited, result: await kit.run(limited, blocks) };
      });
      assertTimedOut(result);
      assert.equal(result.stdout, "before\nstarted\n");
      assert.deepEqual(
        result.blocks.map(({ timedOut }) => timedOut),
        [false, true],
      );
      await assertDead(kit, executor, "main");
    },
  },
  {
    name: "totalTimeoutMs covers all blocks of a call, and a call can override it",
    async run(kit) {
      const { language } = kit;
      const executor = await kit.create({ totalTimeoutMs: Infinity });
      await executor.start();
      const nap = language.program(language.sleep(300));
      const result = await kit.run(
        executor,
        Array.from({ length: 100 }, () => nap),
        { totalTimeoutMs: 4000 },
      );
      // Time may run out between two blocks.
      assert.deepEqual([result.timedOut, result.exitCode], [true, 124]);
      assert.ok(result.blocks.length < 20, `${result.blocks.length} blocks of 0.3 s ran in 4 s`);
      const next = await kit.succeedWith(executor, language.print("next"));
      assert.equal(next.timedOut, false);
    },
  },
  {
    name: "totalTimeoutMs includes the wait for the start",
    async run(kit) {
      const { language } = kit;
      const executor = await kit.create();
      const result = await kit.run(executor, language.program(language.beat("main")), { totalTimeoutMs: 1 });
      assert.deepEqual(
        [result.exitCode, result.timedOut, result.blocks.length === 0 || result.blocks[0]?.timedOut],
        [124, true, true],
      );
      await kit.succeedWith(executor, language.print("next"));
    },
  },
];

const invalid: readonly number[] = [0, -1, Number.NaN];

/** A block whose time runs out. */
export const timeout: ConformanceGroup = {
  name: "timeout",
  waits: true,
  cases: [
    ...wholeCall,
    {
      name: "ends the block with exit code 124 and keeps its output",
      async run(kit) {
        const { language } = kit;
        const blocks = [
          language.program(language.print("before")),
          language.program(language.print("started"), language.write("partial"), language.beat("main")),
          language.program(language.writeFile("after.txt", "ran")),
        ];
        const { executor, result, events } = await withEnoughTime(kit, async (timeoutMs) => {
          const limited = await kit.create({ timeoutMs });
          const followed = followStream(limited.streamCodeBlocks(blocks));
          return {
            executor: limited,
            result: await kit.within("the stream", followed.result),
            events: followed.events,
          };
        });
        assertTimedOut(result);
        assert.equal(result.blocks.length, 2, "later blocks do not run");
        assert.equal(result.blocks[0]?.timedOut, false);
        assert.equal(result.stdout, "before\nstarted\npartial");
        assert.equal(streamedText(events, "stdout"), "before\nstarted\npartial");
        await assertDead(kit, executor, "main");
      },
    },
    ...childKinds.map(endsChild),
    {
      name: "ends a program that ignores signals and interrupts",
      async run(kit) {
        const { language } = kit;
        const program = language.program(language.print("started"), language.beatStubbornly("main"));
        const { executor, result } = await runIntoLimit(kit, program);
        assert.equal(result.stdout, "started\n");
        await assertDead(kit, executor, "main");
        await kit.succeed(executor, language.program(language.print("next")), unhurried);
      },
    },
    {
      name: "applies to each block separately",
      async run(kit) {
        // Many short blocks that together exceed the limit, each with plenty of time to spare for a slow start.
        const { result } = await withDoubledTime(kit, 8000, async (timeoutMs) => {
          const pause = kit.language.program(kit.language.sleep(timeoutMs / 8));
          const executor = await kit.create({ timeoutMs });
          const ended = await kit.run(
            executor,
            Array.from({ length: 9 }, () => pause),
          );
          return { wasEnough: !ended.timedOut, result: ended };
        });
        assert.deepEqual([result.exitCode, result.blocks.length], [0, 9], result.output);
      },
    },
    {
      name: "can be set for one call, shorter or longer than the executor's",
      async run(kit) {
        const { language } = kit;
        const short = await kit.create({ timeoutMs: 500 });
        for (const timeoutMs of [60_000, Number.POSITIVE_INFINITY]) {
          await kit.succeed(short, language.program(language.sleep(1000)), { timeoutMs });
        }
        const long = await kit.create({ timeoutMs: 60_000 });
        const result = await kit.run(long, language.program(language.beat("main")), { timeoutMs: 500 });
        assertTimedOut(result);
      },
    },
    {
      name: "may expire before the program has started",
      async run(kit) {
        const executor = await kit.create();
        const result = await kit.run(executor, kit.language.program(kit.language.beat("main")), { timeoutMs: 1 });
        assertTimedOut(result);
        await kit.succeedWith(executor, kit.language.print("next"));
      },
    },
    {
      name: "leaves the executor usable, and reports whether variables were lost",
      async run(kit) {
        const { language } = kit;
        const { executor, result: timedOut } = await runIntoLimit(
          kit,
          language.program(language.beat("main")),
          (made) => kit.succeed(made, language.program(language.assign("kept", "here")), unhurried),
        );
        const next = await kit.succeed(executor, language.program(language.print("next")), unhurried);
        assert.equal(next.output, "next\n");
        if (!kit.capabilities.stateful) return;
        const variable = await kit.run(executor, language.program(language.printAssigned("kept")), unhurried);
        assert.equal(
          variable.exitCode !== 0,
          timedOut.stateLost || next.stateLost,
          "stateLost is true exactly if the variables are gone",
        );
      },
    },
    {
      name: "does not affect a concurrent run",
      needs: [processes],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const other = await startWaiting(kit, executor);
        assertTimedOut(await kit.run(executor, language.program(language.beat("main")), { timeoutMs: 1000 }));
        await executor.files.write("go", "");
        assert.equal((await other.result).output, "lived on\n");
      },
    },
    {
      name: "leaves an earlier block's background process running",
      needs: [startsProcesses],
      async run(kit) {
        const { language } = kit;
        const background = language.program(language.spawnBeating("background", settledKind(kit)));
        const { executor, result } = await runIntoLimit(kit, language.program(language.beat("main")), (made) =>
          kit.succeed(made, background, unhurried),
        );
        await assertDead(kit, executor, "main");
        if (!result.stateLost) await assertBeats(kit, workspaceHeartbeat(executor, "background"));
      },
    },
    {
      name: "must be a positive number",
      async run(kit) {
        const executor = await kit.shared();
        for (const timeoutMs of invalid) {
          const block = kit.language.program(kit.language.nothing());
          await kit.rejects(InvalidInputError, `create with timeoutMs ${timeoutMs}`, kit.create({ timeoutMs }));
          const called = executor.executeCodeBlocks([block], { timeoutMs });
          await kit.rejects(InvalidInputError, `a call with timeoutMs ${timeoutMs}`, called);
        }
      },
    },
  ],
};

/** The limit for calls that do not test the executor's own limit. */
const unhurried = { timeoutMs: 60_000 };

/**
 * Runs a block that beats in `main` until its time runs out.
 *
 * @param before - runs first, with the executor that has the limit.
 */
async function runIntoLimit(
  kit: CaseContext,
  program: CodeBlock,
  before: (executor: CodeExecutor) => Promise<unknown> = async () => {},
): Promise<{ readonly executor: CodeExecutor; readonly result: CodeResult }> {
  const ended = await withEnoughTime(kit, async (timeoutMs) => {
    const executor = await kit.create({ timeoutMs });
    await before(executor);
    return { executor, result: await kit.run(executor, program) };
  });
  assertTimedOut(ended.result);
  return ended;
}

/** Checks that every part of a result shows the timeout. */
function assertTimedOut(result: CodeResult): void {
  assert.equal(result.timedOut, true, `timedOut should be true; output: ${result.output}`);
  assert.equal(result.exitCode, 124);
  const last = result.blocks.at(-1);
  assert.equal(last?.timedOut, true);
  assert.equal(last.exitCode, 124);
}
