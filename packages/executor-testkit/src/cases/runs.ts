import assert from "node:assert/strict";
import {
  type CodeExecutor,
  type ExecutionEvent,
  ExecutorStoppedError,
  InvalidInputError,
  type RunEvent,
  type SubmittedRun,
} from "@fenced/core";
import type { ConformanceGroup } from "../conformance-case.ts";
import { followStream, streamedText } from "../observe/follow-stream.ts";
import { assertDead } from "../observe/heartbeat.ts";
import { eventsOf } from "../observe/run-events.ts";
import { beating, untilRunning } from "../observe/until-running.ts";

/** Runs that were submitted. */
export const runs: ConformanceGroup = {
  name: "runs",
  waits: true,
  cases: [
    {
      name: "go on without a reader, and replay their events from any position",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const blocks = [language.program(language.print("one")), language.program(language.print("two"))];
        const submitted = await executor.submit(blocks);
        const result = await kit.within("the result", submitted.result());
        assert.equal(result.output, "one\ntwo\n");
        assert.equal(submitted.state, "finished");
        const all = await eventsOf(kit, submitted);
        assert.deepEqual(
          all.map(({ seq }) => seq),
          all.map((_, index) => index + 1),
        );
        assert.equal(streamedText(all.flatMap(executionEvents)), "one\ntwo\n");
        assert.deepEqual(all.at(-1)?.event, { type: "result", result });
        assert.deepEqual(await eventsOf(kit, submitted, 2), all.slice(2));
        assert.deepEqual(await eventsOf(kit, submitted, all.length), []);
      },
    },
    {
      name: "are the same under the same id, and never executed twice",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const id = "order 42/\u00E4";
        const blocks = [language.program(language.writeFile("ran.txt", "ran"), language.print("done"))];
        const submitted = await executor.submit(blocks, { id });
        assert.equal(submitted.id, id);
        const both = [submitted.result(), (await executor.submit(blocks, { id })).result()];
        const [one, other] = await kit.within("the results", Promise.all(both));
        assert.equal(one?.output, "done\n");
        assert.equal(other, one);
        await executor.files.remove("ran.txt");
        const later = await executor.submit(blocks, { id });
        assert.equal(await kit.within("the result again", later.result()), one);
        assert.equal(await executor.run(id).result(), one);
        assert.ok(executor.runs().some((run) => run.id === id));
        assert.deepEqual(await executor.files.list(), []);
        const otherCode = executor.submit([language.program(language.nothing())], { id });
        await kit.rejects(InvalidInputError, "submit() of other code under a used id", otherCode);
        assert.throws(() => executor.run("another"), { name: "RunNotFoundError" });
      },
    },
    {
      name: "end with everything that they started when they are cancelled",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.sharedUnlessStateful();
        const submitted = await executor.submit([language.program(...beating(language, "main"))]);
        const followed = followStream(withoutPositions(submitted));
        followed.result.catch(() => {});
        await untilRunning(kit, executor, followed, "main");
        await kit.within("cancel()", submitted.cancel());
        assert.equal(submitted.state, "failed");
        await assert.rejects(submitted.result(), { name: "AbortError" });
        await assert.rejects(followed.result, { name: "AbortError" });
        await kit.within("cancel() again", submitted.cancel());
        await assertDead(kit, executor, "main");
      },
    },
    {
      name: "end when the executor is stopped",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        const submitted = await executor.submit([language.program(...beating(language, "main"))]);
        const followed = followStream(withoutPositions(submitted));
        followed.result.catch(() => {});
        await untilRunning(kit, executor, followed, "main");
        await kit.within("stop()", executor.stop());
        await kit.rejects(ExecutorStoppedError, "the result of a run whose executor was stopped", submitted.result());
        await kit.rejects(ExecutorStoppedError, "its events", eventsOf(kit, submitted));
        const late = executor.submit([language.program(language.nothing())]);
        await kit.rejects(ExecutorStoppedError, "submit() after stop()", late);
      },
    },
    {
      name: "are refused if there is nothing to run, or an option is wrong",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.shared();
        const blocks = [language.program(language.nothing())];
        const refused: readonly (readonly unknown[])[] = [
          [[]],
          [blocks, { id: "" }],
          [blocks, { timeoutMs: 0 }],
          [blocks, { signal: new AbortController().signal }],
          [blocks, { unknown: true }],
        ];
        for (const given of refused) {
          await kit.rejects(InvalidInputError, `submit(${JSON.stringify(given)})`, submitAnything(executor, given));
        }
      },
    },
  ],
};

/** Submits what the types do not allow. */
async function submitAnything(executor: CodeExecutor, given: readonly unknown[]): Promise<unknown> {
  const submit: unknown = Reflect.get(executor, "submit");
  return typeof submit === "function" ? Reflect.apply(submit, executor, given) : undefined;
}

function executionEvents({ event }: RunEvent): ExecutionEvent[] {
  return event.type === "gap" ? [] : [event];
}

async function* withoutPositions(submitted: SubmittedRun): AsyncGenerator<ExecutionEvent, void, void> {
  for await (const event of submitted.events()) yield* executionEvents(event);
}
