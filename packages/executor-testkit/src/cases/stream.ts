import assert from "node:assert/strict";
import type { ExecutionEvent } from "@fenced/core";
import { beatingChild } from "../beating-child.ts";
import type { ConformanceGroup } from "../conformance-case.ts";
import { live } from "../needs.ts";
import { followStream, streamedText } from "../observe/follow-stream.ts";
import { assertDead, assertStopped, workspaceHeartbeat } from "../observe/heartbeat.ts";
import { beating, untilBeating } from "../observe/until-running.ts";

/** The events of a run, as they happen. */
export const stream: ConformanceGroup = {
  name: "stream",
  waits: true,
  cases: [
    {
      name: "brackets each block and ends with exactly one result",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const blocks = [
          language.program(language.print("one"), language.write("problem\n", "stderr")),
          language.program(language.nothing()),
          language.program(language.print("three"), language.fail("deliberate")),
          language.program(language.print("four")),
        ];
        const followed = followStream(executor.streamCodeBlocks(blocks));
        const result = await kit.within("the stream", followed.result);
        assertShape(followed.events, 3);
        const starts = followed.events.filter((event) => event.type === "block-start");
        assert.deepEqual(
          starts.map(({ block }) => block),
          blocks.slice(0, 3),
        );
        const ends = followed.events.filter((event) => event.type === "block-end");
        assert.deepEqual(
          ends.map((event) => event.result),
          result.blocks,
        );
        assert.equal(streamedText(followed.events), result.output);
        assert.equal(streamedText(followed.events, "stdout"), result.stdout);
        assert.equal(streamedText(followed.events, "stderr"), result.stderr);
      },
    },
    {
      name: "returns the same result as executeCodeBlocks",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const blocks = [language.program(language.print("one")), { language: "klingon", code: "" }];
        const followed = followStream(executor.streamCodeBlocks(blocks));
        const streamed = await kit.within("the stream", followed.result);
        const executed = await kit.run(executor, blocks);
        assertShape(followed.events, 2);
        assert.deepEqual(
          {
            ...streamed,
            durationMs: 0,
            codeFile: "",
            blocks: streamed.blocks.map((block) => ({ ...block, durationMs: 0 })),
          },
          {
            ...executed,
            durationMs: 0,
            codeFile: "",
            blocks: executed.blocks.map((block) => ({ ...block, durationMs: 0 })),
          },
        );
      },
    },
    {
      name: "delivers output while the program runs",
      needs: [live],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.sharedUnlessStateful();
        const program = language.program(
          language.write("question"),
          language.awaitFile("answer"),
          language.print(", answered"),
        );
        const followed = followStream(executor.streamCodeBlocks([program]));
        await kit.within("output of a program that waits", followed.seen("question"));
        assert.ok(!followed.events.some(({ type }) => type === "block-end"));
        // A stateful executor may be unable to write until the block has ended, so the block must be ended in another
        // way there.
        if (kit.capabilities.stateful) return;
        await executor.files.write("answer", "");
        assert.equal((await kit.within("the stream", followed.result)).output, "question, answered\n");
      },
    },
    {
      name: "runs nothing before the first event is requested",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const events = executor.streamCodeBlocks([language.program(language.writeFile("ran.txt", "ran"))]);
        // Run a program that begins later and takes longer. If the first one ran at all, it has ended by then.
        await kit.succeedWith(executor, language.sleep(500));
        assert.deepEqual(await executor.files.list(), []);
        await kit.within("the stream", followStream(events).result);
        assert.equal((await executor.files.list()).length, 1);
      },
    },
    {
      name: "kills the program when the consumer leaves the loop",
      needs: [live],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.sharedUnlessStateful();
        const child = beatingChild(kit);
        const program = language.program(...child.statements, ...beating(language, "main"));
        const leaving = (async () => {
          for await (const event of executor.streamCodeBlocks([program])) {
            if (event.type !== "stdout") continue;
            await untilBeating(kit, executor, "main");
            break;
          }
        })();
        await kit.within("leaving the loop", leaving);
        await assertDead(kit, executor, "main", ...child.files);
        await kit.succeedWith(executor, language.print("next"));
      },
    },
    {
      name: "kills the program when the loop throws, and passes the error on",
      needs: [live],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.sharedUnlessStateful();
        const program = language.program(...beating(language, "main"));
        const error = new Error("of the consumer");
        const throwing = (async () => {
          for await (const event of executor.streamCodeBlocks([program])) {
            if (event.type !== "stdout") continue;
            await untilBeating(kit, executor, "main");
            throw error;
          }
        })();
        await assert.rejects(kit.within("throwing in the loop", throwing), (thrown) => thrown === error);
        await assertDead(kit, executor, "main");
      },
    },
    {
      name: "ends at once when return() is called while an event is awaited",
      needs: [live],
      async run(kit) {
        const { language } = kit;
        const executor = await kit.sharedUnlessStateful();
        const program = language.program(...beating(language, "main"));
        const iterator = executor.streamCodeBlocks([program])[Symbol.asyncIterator]();
        await kit.within("the first output", nextOutput(iterator));
        const pending = Promise.resolve(iterator.next()).catch(() => {});
        await untilBeating(kit, executor, "main");
        await kit.within("return() while next() is pending", Promise.resolve(iterator.return?.()));
        await kit.within("the pending next() after return()", pending);
        assert.deepEqual(await kit.within("next() after return()", iterator.next()), { done: true, value: undefined });
        await assertDead(kit, executor, "main");
      },
    },
    {
      name: "runs nothing if it is closed before the first event",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const program = language.program(language.writeFile("ran.txt", "ran"));
        const iterator = executor.streamCodeBlocks([program])[Symbol.asyncIterator]();
        await kit.within("return() before next()", Promise.resolve(iterator.return?.()));
        assert.deepEqual(await kit.within("next() after return()", iterator.next()), { done: true, value: undefined });
        assert.deepEqual(await executor.files.list(), []);
      },
    },
    {
      name: "ends the program if the consumer leaves at the first event",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.sharedUnlessStateful();
        const program = language.program(language.beat("main"));
        const leaving = (async () => {
          for await (const event of executor.streamCodeBlocks([program])) {
            assert.equal(event.type, "block-start");
            break;
          }
        })();
        await kit.within("leaving the loop", leaving);
        // By the end of a program that begins later and takes longer, the first one would beat.
        await kit.succeedWith(executor, language.sleep(1500));
        const heartbeat = workspaceHeartbeat(executor, "main");
        if ((await heartbeat.count()) !== undefined) await assertStopped(heartbeat);
        await kit.succeedWith(executor, language.print("next"));
      },
    },
  ],
};

async function nextOutput(iterator: AsyncIterator<ExecutionEvent>): Promise<void> {
  for (;;) {
    const step = await iterator.next();
    assert.ok(step.done !== true, "the stream ended without output");
    if (step.value.type === "stdout") return;
  }
}

function assertShape(events: readonly ExecutionEvent[], blocks: number): void {
  const skeleton = events
    .filter(({ type }) => type !== "stdout" && type !== "stderr")
    .map((event) => (event.type === "result" ? "result" : `${event.type} ${event.index}`));
  const expected = Array.from({ length: blocks }, (_, index) => [`block-start ${index}`, `block-end ${index}`]).flat();
  assert.deepEqual(skeleton, [...expected, "result"]);

  let current = -1;
  for (const event of events) {
    if (event.type === "block-start") current = event.index;
    if (event.type === "stdout" || event.type === "stderr") {
      assert.equal(event.index, current, "output comes between the start and the end of its block");
      assert.notEqual(event.text, "", "no event without text");
    }
  }
}
