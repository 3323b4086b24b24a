import assert from "node:assert/strict";
import { ExecutorStoppedError, type CodeExecutor } from "@fenced/core";
import { beatingChild } from "../beating-child.ts";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { processes, stateful } from "../needs.ts";
import { followStream } from "../observe/follow-stream.ts";
import { assertDead } from "../observe/heartbeat.ts";
import { beating, untilRunning } from "../observe/until-running.ts";

const endsRun = (method: "stop" | "restart"): ConformanceCase => ({
  name: `${method}() during a run rejects that call with ExecutorStoppedError and ends its processes`,
  async run(kit) {
    const { language, subject } = kit;
    const options = subject.takesWorkDir ? { workDir: await kit.directory() } : {};
    const executor = await kit.create(options);
    const child = beatingChild(kit);
    const program = language.program(...child.statements, ...beating(language, "main"));
    const followed = followStream(executor.streamCodeBlocks([program]));
    await untilRunning(kit, executor, followed, "main");
    await kit.within(`${method}()`, executor[method]());
    await kit.rejects(ExecutorStoppedError, "the call under way", followed.result);
    if (method === "stop") await kit.within("start()", executor.start());
    // Without a work directory on this host, nothing of a stopped executor is left to inspect.
    if (method === "restart" || subject.takesWorkDir) await assertDead(kit, executor, "main", ...child.files);
    await kit.succeedWith(executor, language.print("next"));
  },
});

/** Start, stop, restart. */
export const lifecycle: ConformanceGroup = {
  name: "life cycle",
  waits: true,
  cases: [
    {
      name: "the first call starts the executor",
      async run(kit) {
        const result = await kit.succeedWith(await kit.create(), kit.language.print("started"));
        assert.equal(result.output, "started\n");
      },
    },
    {
      name: "start() does not extend the capabilities",
      async run(kit) {
        const executor = await kit.create();
        const before = executor.capabilities;
        await kit.within("start()", executor.start());
        const after = executor.capabilities;
        assert.deepEqual(
          after.languages.filter((name) => !before.languages.includes(name)),
          [],
        );
        for (const field of ["stateful", "isolation"] as const) assert.equal(after[field], before[field]);
        for (const name of after.functions) assert.ok(after.languages.includes(name), `functions in ${name}`);
      },
    },
    {
      name: "start() can be called repeatedly and concurrently",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        await kit.within("start() five times", Promise.all(Array.from({ length: 5 }, () => executor.start())));
        await executor.files.write("kept.txt", "kept");
        await kit.within("start() again", executor.start());
        assert.equal((await executor.files.list()).length, 1, "it is the same session");
        await kit.succeedWith(executor, language.print("once"));
      },
    },
    {
      name: "simultaneous first calls share one session",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        const results = await Promise.all(
          ["a", "b", "c"].map((name) => kit.succeedWith(executor, language.writeFile(`${name}.txt`, name))),
        );
        assert.equal(results.length, 3);
        assert.equal((await executor.files.list()).length, 3, "they share one session");
      },
    },
    {
      name: "stop() is harmless without start(), repeatedly and concurrently",
      async run(kit) {
        const executor = await kit.create();
        await kit.within("stop() without start()", executor.stop());
        await kit.within("start()", executor.start());
        await kit.succeedWith(executor, kit.language.print("started"));
        await kit.within(
          "stop() three times at once",
          Promise.all([executor.stop(), executor.stop(), executor.stop()]),
        );
        await kit.within("stop() again", executor.stop());
      },
    },
    {
      name: "stop() during start() leaves the executor usable",
      async run(kit) {
        const executor = await kit.create();
        const starting = executor.start().catch(() => {});
        await kit.within("stop() during start()", executor.stop());
        await kit.within("start() that was stopped", starting);
        await kit.within("start()", executor.start());
        await kit.succeedWith(executor, kit.language.print("next"));
      },
    },
    {
      name: "an executor can be started again after stop()",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        for (const name of ["one", "two", "three"]) {
          const result = await kit.succeedWith(executor, language.print(name));
          assert.equal(result.output, `${name}\n`);
          await kit.within("stop()", executor.stop());
          await kit.within("start() after stop()", executor.start());
        }
        await kit.succeedWith(executor, language.print("four"));
      },
    },
    {
      name: "after stop() every call rejects with ExecutorStoppedError and creates nothing",
      alone: true,
      async run(kit) {
        const executor = await kit.create();
        await kit.succeedWith(executor, kit.language.print("started"));
        await kit.within("stop()", executor.stop());
        await assertEnded(kit, executor);
      },
    },
    {
      name: "after stop() without start(), calls do not start the executor",
      alone: true,
      async run(kit) {
        const executor = await kit.create();
        await kit.within("stop()", executor.stop());
        await assertEnded(kit, executor);
      },
    },
    {
      name: "stop() rejects calls that wait for the start, which then create nothing",
      alone: true,
      async run(kit) {
        const executor = await kit.create();
        const before = await kit.resources();
        const calls = lateCalls(kit, executor);
        await kit.within("stop()", executor.stop());
        await assertAllRejected(kit, calls);
        await assertNothingAdded(kit, before);
      },
    },
    {
      name: "after [Symbol.asyncDispose]() nothing starts the executor again",
      alone: true,
      async run(kit) {
        const executor = await kit.create();
        await kit.succeedWith(executor, kit.language.print("started"));
        await kit.within("[Symbol.asyncDispose]()", executor[Symbol.asyncDispose]());
        await kit.rejects(ExecutorStoppedError, "start()", executor.start());
        await assertEnded(kit, executor);
      },
    },
    {
      name: "start() can be aborted, and then leaves nothing behind",
      alone: true,
      async run(kit) {
        const executor = await kit.create();
        const before = await kit.resources();
        const reason = new Error("the caller has left");
        await assert.rejects(executor.start({ signal: AbortSignal.abort(reason) }), reason);
        const controller = new AbortController();
        const starting = executor.start({ signal: controller.signal });
        setTimeout(() => controller.abort(reason), 5);
        // The start may be faster than the abort.
        await kit.within(
          "start() that was aborted",
          starting.catch((error: unknown) => assert.equal(error, reason)),
        );
        await kit.within("stop()", executor.stop());
        await assertNothingAdded(kit, before);
        await kit.within("start()", executor.start());
        await kit.succeedWith(executor, kit.language.print("next"));
      },
    },
    endsRun("stop"),
    endsRun("restart"),
    {
      name: "stop() also rejects calls that wait for their turn",
      needs: [stateful],
      async run(kit) {
        await assertAllStopped(kit, await kit.create());
      },
    },
    {
      name: "stop() rejects all concurrent calls",
      needs: [processes],
      async run(kit) {
        await assertAllStopped(kit, await kit.create());
      },
    },
    {
      name: "await using stops the executor",
      async run(kit) {
        const executor = await kit.create();
        const program = kit.language.program(...beating(kit.language, "main"));
        const followed = followStream(executor.streamCodeBlocks([program]));
        await untilRunning(kit, executor, followed, "main");
        await kit.within("[Symbol.asyncDispose]()", executor[Symbol.asyncDispose]());
        await kit.rejects(ExecutorStoppedError, "the call under way", followed.result);
      },
    },
    {
      name: "restart() clears variables and keeps files",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        await kit.succeedWith(executor, language.assign("kept", "value"), language.writeFile("kept.txt", "kept\n"));
        await kit.within("restart()", executor.restart());
        const file = await kit.succeedWith(executor, language.printFile("kept.txt"));
        assert.equal(file.output, "kept\n");
        const variable = await kit.run(executor, language.program(language.printAssigned("kept")));
        assert.notEqual(variable.exitCode, 0);
      },
    },
    {
      name: "restart() is harmless without start() and twice at once",
      async run(kit) {
        const executor = await kit.create();
        await kit.within("restart() without start()", executor.restart());
        await kit.succeedWith(executor, kit.language.print("one"));
        await kit.within("restart() twice at once", Promise.all([executor.restart(), executor.restart()]));
        await kit.succeedWith(executor, kit.language.print("two"));
      },
    },
  ],
};

async function assertNothingAdded(kit: CaseContext, before: readonly string[]): Promise<void> {
  const added = (await kit.resources()).filter((each) => !before.includes(each));
  assert.deepEqual(added, [], "no resource was left behind");
}

/** One call of each kind. */
function lateCalls(kit: CaseContext, executor: CodeExecutor): Promise<unknown>[] {
  const program = kit.language.program(kit.language.print("late"));
  const calls: Promise<unknown>[] = [
    executor.executeCodeBlocks([program]),
    followStream(executor.streamCodeBlocks([program])).result,
    executor.files.write("late.txt", "late"),
    executor.files.list(),
    executor.files.stat("late.txt"),
    executor.files.read("late.txt"),
    executor.files.readStream("late.txt").getReader().read(),
    executor.files.writeStream("late.txt").close(),
    executor.files.upload([]),
    executor.restart(),
  ];
  for (const call of calls) call.catch(() => {});
  return calls;
}

async function assertAllRejected(kit: CaseContext, calls: readonly Promise<unknown>[]): Promise<void> {
  for (const [index, call] of calls.entries()) await kit.rejects(ExecutorStoppedError, `late call ${index}`, call);
}

async function assertEnded(kit: CaseContext, executor: CodeExecutor): Promise<void> {
  const before = await kit.resources();
  await assertAllRejected(kit, lateCalls(kit, executor));
  await assertNothingAdded(kit, before);
}

async function assertAllStopped(kit: CaseContext, executor: CodeExecutor): Promise<void> {
  const { language } = kit;
  const program = language.program(...beating(language, "main"));
  const followed = followStream(executor.streamCodeBlocks([program]));
  const others = [1, 2].map((name) => executor.executeCodeBlocks([language.program(language.beat(`other${name}`))]));
  for (const other of others) other.catch(() => {});
  await untilRunning(kit, executor, followed, "main");
  await kit.within("stop()", executor.stop());
  for (const call of [followed.result, ...others]) {
    await kit.rejects(ExecutorStoppedError, "a call under way", call);
  }
}
