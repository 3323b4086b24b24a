import assert from "node:assert/strict";
import { InvalidInputError, type CodeResult } from "@fenced/core";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { childKinds, type ChildKind } from "../languages/fixture-language.ts";
import { childKind, processes } from "../needs.ts";
import { followStream, streamedText } from "../observe/follow-stream.ts";
import { assertBeats, assertDead, workspaceHeartbeat } from "../observe/heartbeat.ts";
import { settledKind } from "../settled-kind.ts";

/** Long enough for a program to get going on a busy machine, short enough to wait for. */
const shortTimeoutMs = 3000;

const endsChild = (kind: ChildKind): ConformanceCase => ({
  name: `ends a process that the block started (${kind})`,
  needs: [childKind(kind)],
  async run(kit) {
    const { language } = kit;
    const executor = await kit.create({ timeoutMs: shortTimeoutMs });
    const program = language.program(
      language.spawnBeating("child", kind),
      language.print("started"),
      language.beat("main"),
    );
    const result = await kit.run(executor, program);
    assertTimedOut(result);
    assert.equal(result.stdout, "started\n");
    await assertDead(kit, executor, "main", "child");
  },
});

const invalid: readonly number[] = [0, -1, Number.NaN];

/** A block whose time is up. */
export const timeout: ConformanceGroup = {
  name: "timeout",
  cases: [
    {
      name: "ends the block with exit code 124 and keeps its output",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create({ timeoutMs: shortTimeoutMs });
        const followed = followStream(
          executor.streamCodeBlocks([
            language.program(language.print("before")),
            language.program(language.print("started"), language.write("partial"), language.beat("main")),
            language.program(language.writeFile("after.txt", "ran")),
          ]),
        );
        const result = await kit.within("the stream", followed.result);
        assertTimedOut(result);
        assert.equal(result.blocks.length, 2, "later blocks do not run");
        assert.equal(result.blocks[0]?.timedOut, false);
        assert.equal(result.stdout, "before\nstarted\npartial");
        assert.equal(streamedText(followed.events, "stdout"), "before\nstarted\npartial");
        await assertDead(kit, executor, "main");
      },
    },
    ...childKinds.map(endsChild),
    {
      name: "ends a program that ignores signals and interrupts",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create({ timeoutMs: shortTimeoutMs });
        const result = await kit.run(
          executor,
          language.program(language.print("started"), language.beatStubbornly("main")),
        );
        assertTimedOut(result);
        assert.equal(result.stdout, "started\n");
        await assertDead(kit, executor, "main");
        await kit.succeedWith(executor, language.print("next"));
      },
    },
    {
      name: "counts each block by itself",
      async run(kit) {
        // Many short blocks: longer than the limit together, and each with much time to spare for a slow start.
        const pause = kit.language.program(kit.language.sleep(700));
        await kit.succeed(
          await kit.create({ timeoutMs: 4000 }),
          Array.from({ length: 6 }, () => pause),
        );
      },
    },
    {
      name: "can be set for one call, shorter or longer than the executor's",
      async run(kit) {
        const { language } = kit;
        const short = await kit.create({ timeoutMs: 1500 });
        await kit.succeed(short, language.program(language.sleep(2500)), { timeoutMs: 30_000 });
        await kit.succeed(short, language.program(language.sleep(2500)), { timeoutMs: Number.POSITIVE_INFINITY });
        const long = await kit.create({ timeoutMs: 60_000 });
        const result = await kit.run(long, language.program(language.beat("main")), { timeoutMs: 1500 });
        assertTimedOut(result);
      },
    },
    {
      name: "may be over before the program has begun",
      async run(kit) {
        const executor = await kit.create();
        const result = await kit.run(executor, kit.language.program(kit.language.beat("main")), { timeoutMs: 1 });
        assertTimedOut(result);
        await kit.succeedWith(executor, kit.language.print("next"));
      },
    },
    {
      name: "leaves the executor usable, and says so if variables were lost",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create({ timeoutMs: shortTimeoutMs });
        await kit.succeedWith(executor, language.assign("kept", "here"));
        const timedOut = await kit.run(executor, language.program(language.beat("main")));
        assertTimedOut(timedOut);
        const next = await kit.succeedWith(executor, language.print("next"));
        assert.equal(next.output, "next\n");
        if (!kit.capabilities.stateful) return;
        const variable = await kit.run(executor, language.program(language.printAssigned("kept")));
        assert.equal(
          variable.exitCode !== 0,
          timedOut.stateLost || next.stateLost,
          "stateLost is true exactly if the variables are gone",
        );
      },
    },
    {
      name: "does not touch a run at its side",
      needs: [processes],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        const other = kit.run(executor, language.program(language.awaitFile("go"), language.print("lived on")));
        const result = await kit.run(executor, language.program(language.beat("main")), { timeoutMs: shortTimeoutMs });
        assertTimedOut(result);
        await executor.files.write("go", "");
        assert.equal((await other).output, "lived on\n");
      },
    },
    {
      name: "does not touch what an earlier block left running",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create({ timeoutMs: shortTimeoutMs });
        await kit.succeedWith(executor, language.spawnBeating("background", settledKind(kit)));
        const result = await kit.run(executor, language.program(language.beat("main")));
        assertTimedOut(result);
        await assertDead(kit, executor, "main");
        if (!result.stateLost) await assertBeats(kit, workspaceHeartbeat(executor, "background"));
      },
    },
    {
      name: "must be a positive number",
      async run(kit) {
        const executor = await kit.create();
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

/** Sees to it that a result says in all ways that time was up. */
function assertTimedOut(result: CodeResult): void {
  assert.equal(result.timedOut, true, `timedOut should be true; output: ${result.output}`);
  assert.equal(result.exitCode, 124);
  const last = result.blocks.at(-1);
  assert.equal(last?.timedOut, true);
  assert.equal(last.exitCode, 124);
}
