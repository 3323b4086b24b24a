import assert from "node:assert/strict";
import { getEventListeners, once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { CodeExecutor } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { childKinds, type ChildKind } from "../languages/fixture-language.ts";
import { childKind, processes, startsProcesses, stateful, staysInSession } from "../needs.ts";
import { assertRejectsWith } from "../observe/assert-rejects-with.ts";
import { type FollowedStream, followStream, streamedText } from "../observe/follow-stream.ts";
import { assertBeats, assertDead, workspaceHeartbeat } from "../observe/heartbeat.ts";
import { beating, startWaiting, untilRunning, withDoubledTime, withEnoughTime } from "../observe/until-running.ts";
import { settledKind } from "../settled-kind.ts";

const endsChild = (kind: ChildKind): ConformanceCase => ({
  name: `ends a process that the block started (${kind})`,
  needs: [childKind(kind)],
  async run(kit) {
    const { language } = kit;
    await abortRunning(kit, await kit.sharedUnlessStateful(), {
      statements: [language.spawnBeating("child", kind), ...beating(language, "main")],
      files: ["main", "child"],
      reason: new Error("changed my mind"),
    });
  },
});

/** A call that is aborted before, while or after it runs. */
export const abort: ConformanceGroup = {
  name: "abort",
  waits: true,
  cases: [
    {
      name: "before the call: nothing runs and the call rejects with the reason",
      async run(kit) {
        const executor = await kit.shared();
        const program = kit.language.program(kit.language.writeFile("ran.txt", "ran"));
        for (const reason of [new Error("no"), { any: "object" }, "a text", undefined]) {
          const signal = AbortSignal.abort(reason);
          await assertRejectsWith(kit, executor.executeCodeBlocks([program], { signal }), signal.reason);
          await assertRejectsWith(
            kit,
            followStream(executor.streamCodeBlocks([program], { signal })).result,
            signal.reason,
          );
        }
        assert.deepEqual(await executor.files.list(), []);
      },
    },
    {
      name: "during executeCodeBlocks: rejects with the reason once every process is dead",
      async run(kit) {
        const { language } = kit;
        const blocks = [
          language.program(...beating(language, "main")),
          language.program(language.writeFile("after.txt", "ran")),
        ];
        const { executor } = await withEnoughTime(kit, async (milliseconds) => {
          const made = await kit.create();
          await made.start();
          const controller = new AbortController();
          const call = made.executeCodeBlocks(blocks, { signal: controller.signal });
          call.catch(() => {});
          await sleep(milliseconds);
          const reason = { not: "an error" };
          controller.abort(reason);
          await assertRejectsWith(kit, call, reason);
          return { executor: made };
        });
        await assertDead(kit, executor, "main");
        assert.ok(!(await executor.files.list()).some(({ path }) => path === "after.txt"), "later blocks do not run");
      },
    },
    {
      name: "during a stream: the output so far arrives, then the stream rejects without a result event",
      async run(kit) {
        const { events } = await abortRunning(kit, await kit.sharedUnlessStateful());
        if (kit.capabilities.isolation !== "remote") assert.equal(streamedText(events, "stdout"), "started\n");
        assert.ok(!events.some(({ type }) => type === "result"), "an aborted stream has no result");
      },
    },
    ...childKinds.map(endsChild),
    {
      name: "ends a program that ignores signals and interrupts",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.sharedUnlessStateful();
        const statements = beating(language, "main", (file) => language.beatStubbornly(file));
        await abortRunning(kit, executor, { statements });
        await kit.succeedWith(executor, language.print("next"));
      },
    },
    {
      name: "between two blocks: the second does not run",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.sharedUnlessStateful();
        const controller = new AbortController();
        const blocks = [
          language.program(language.print("one")),
          language.program(language.writeFile("after.txt", "ran")),
        ];
        const reading = (async () => {
          for await (const event of executor.streamCodeBlocks(blocks, { signal: controller.signal })) {
            if (event.type === "block-end") controller.abort();
          }
        })();
        reading.catch(() => {});
        await once(controller.signal, "abort");
        await assertRejectsWith(kit, reading, controller.signal.reason);
        assert.deepEqual(await executor.files.list(), []);
      },
    },
    {
      name: "while the executor starts: rejects with the reason and the executor stays usable",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        const controller = new AbortController();
        const program = language.program(language.writeFile("ran.txt", "ran"));
        const call = executor.executeCodeBlocks([program], { signal: controller.signal });
        call.catch(() => {});
        controller.abort();
        await assertRejectsWith(kit, call, controller.signal.reason);
        assert.deepEqual(await executor.files.list(), [], "nothing ran");
        await kit.succeedWith(executor, language.print("next"));
      },
    },
    {
      name: "while the call waits for its turn: rejects at once, and the running call continues",
      needs: [stateful],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        await withDoubledTime(kit, 3000, async (milliseconds) => {
          const ended: string[] = [];
          const undisturbed = language.program(language.sleep(milliseconds), language.print("undisturbed"));
          const first = kit.run(executor, undisturbed).finally(() => ended.push("first"));
          const controller = new AbortController();
          const program = language.program(language.writeFile("ran.txt", "ran"));
          const second = executor.executeCodeBlocks([program], { signal: controller.signal });
          second.catch(() => {});
          await sleep(500);
          // This program may have been held up for so long that the first call is over, and the second has begun.
          if (ended.length > 0 && milliseconds * 2 <= kit.patienceMs) {
            await Promise.all([first, kit.within("the second call", second)]);
            await executor.files.remove("ran.txt");
            return { wasEnough: false };
          }
          controller.abort();
          await assertRejectsWith(kit, second, controller.signal.reason);
          ended.push("second");
          const { output } = await first;
          assert.deepEqual(ended, ["second", "first"], "a waiting call rejects without waiting for the running one");
          assert.match(output, /undisturbed/);
          assert.deepEqual(await executor.files.list(), [], "the call that was aborted never ran");
          return { wasEnough: true };
        });
      },
    },
    {
      name: "ends only its own call",
      needs: [processes],
      async run(kit) {
        const executor = await kit.shared();
        const other = await startWaiting(kit, executor);
        await abortRunning(kit, executor);
        await executor.files.write("go", "");
        assert.equal((await other.result).output, "lived on\n");
      },
    },
    {
      name: "leaves an earlier block's background process running",
      needs: [staysInSession, startsProcesses],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        await kit.succeedWith(executor, language.spawnBeating("background", settledKind(kit)));
        await abortRunning(kit, executor);
        await assertBeats(kit, workspaceHeartbeat(executor, "background"));
      },
    },
    {
      name: "after the end: has no effect, and no listener stays on the signal",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const controller = new AbortController();
        const program = language.program(language.print("done"));
        for (let call = 0; call < 3; call++) await kit.succeed(executor, program, { signal: controller.signal });
        assert.equal(getEventListeners(controller.signal, "abort").length, 0, "no listener stays on the signal");
        controller.abort();
        assert.equal((await kit.succeed(executor, program)).output, "done\n");
      },
    },
  ],
};

/** What to abort, and with which reason. */
interface Aborted {
  /** A program that beats in `main`. Default: one that does nothing else. */
  readonly statements?: readonly string[];
  /** Where everything beats that must be dead. Default: `main`. */
  readonly files?: readonly string[];
  /** Default: that of `AbortController.abort()`. */
  readonly reason?: unknown;
}

/** Aborts a block once it runs; everything must be dead when its stream has rejected with the reason. */
async function abortRunning(
  kit: CaseContext,
  executor: CodeExecutor,
  { statements = beating(kit.language, "main"), files = ["main"], reason }: Aborted = {},
): Promise<FollowedStream> {
  const controller = new AbortController();
  const program = kit.language.program(...statements);
  const followed = followStream(executor.streamCodeBlocks([program], { signal: controller.signal }));
  await untilRunning(kit, executor, followed, "main");
  controller.abort(reason);
  await assertRejectsWith(kit, followed.result, controller.signal.reason);
  await assertDead(kit, executor, ...files);
  return followed;
}
