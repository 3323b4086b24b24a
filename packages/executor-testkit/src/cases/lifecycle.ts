import assert from "node:assert/strict";
import { ExecutorStoppedError, type CodeExecutor } from "@fenced/core";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { processes, stateful } from "../needs.ts";
import { followStream } from "../observe/follow-stream.ts";
import { assertDead } from "../observe/heartbeat.ts";
import { untilRunning } from "../observe/until-running.ts";

const endsRun = (method: "stop" | "restart"): ConformanceCase => ({
  name: `${method}() during a run rejects that call with ExecutorStoppedError, and all is dead`,
  async run(kit) {
    const { language, subject } = kit;
    const options = subject.takesWorkDir ? { workDir: await kit.directory() } : {};
    const executor = await kit.create(options);
    const program = language.program(
      language.spawnBeating("child", "child"),
      language.print("started"),
      language.beat("main"),
    );
    const followed = followStream(executor.streamCodeBlocks([program]));
    await untilRunning(kit, executor, followed, "main");
    await kit.within(`${method}()`, executor[method]());
    await kit.rejects(ExecutorStoppedError, "the call under way", followed.result);
    // Without a directory of its own, a stopped executor has nothing left to look into.
    if (method === "restart" || subject.takesWorkDir) await assertDead(kit, executor, "main", "child");
    await kit.succeedWith(executor, language.print("next"));
  },
});

/** Start, stop, restart. */
export const lifecycle: ConformanceGroup = {
  name: "life cycle",
  cases: [
    {
      name: "the first call starts the executor",
      async run(kit) {
        const result = await kit.succeedWith(await kit.create(), kit.language.print("started"));
        assert.equal(result.output, "started\n");
      },
    },
    {
      name: "capabilities do not grow with the start",
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
      name: "start() may be called again and at once",
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
      name: "the first calls may come at once",
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
      name: "stop() without start(), twice and at once does no harm",
      async run(kit) {
        const executor = await kit.create();
        await kit.within("stop() without start()", executor.stop());
        await kit.succeedWith(executor, kit.language.print("started"));
        await kit.within(
          "stop() three times at once",
          Promise.all([executor.stop(), executor.stop(), executor.stop()]),
        );
        await kit.within("stop() again", executor.stop());
      },
    },
    {
      name: "stop() while it starts leaves it stopped and usable",
      async run(kit) {
        const executor = await kit.create();
        const starting = executor.start().catch(() => {});
        await kit.within("stop() during start()", executor.stop());
        await kit.within("start() that was stopped", starting);
        await kit.succeedWith(executor, kit.language.print("next"));
      },
    },
    {
      name: "it may be used again after stop()",
      async run(kit) {
        const { language } = kit;
        const executor = await kit.create();
        for (const name of ["one", "two", "three"]) {
          const result = await kit.succeedWith(executor, language.print(name));
          assert.equal(result.output, `${name}\n`);
          await kit.within("stop()", executor.stop());
        }
        await kit.within("start() after stop()", executor.start());
        await kit.succeedWith(executor, language.print("four"));
      },
    },
    endsRun("stop"),
    endsRun("restart"),
    {
      name: "stop() rejects the calls that wait for their turn, too",
      needs: [stateful],
      async run(kit) {
        await assertAllStopped(kit, await kit.create());
      },
    },
    {
      name: "stop() rejects all calls that run side by side",
      needs: [processes],
      async run(kit) {
        await assertAllStopped(kit, await kit.create());
      },
    },
    {
      name: "await using stops it",
      async run(kit) {
        const executor = await kit.create();
        const program = kit.language.program(kit.language.print("started"), kit.language.beat("main"));
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
      name: "restart() without start() and twice at once does no harm",
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

async function assertAllStopped(kit: CaseContext, executor: CodeExecutor): Promise<void> {
  const { language } = kit;
  const program = language.program(language.print("started"), language.beat("main"));
  const followed = followStream(executor.streamCodeBlocks([program]));
  const others = [1, 2].map((name) => executor.executeCodeBlocks([language.program(language.beat(`other${name}`))]));
  for (const other of others) other.catch(() => {});
  await untilRunning(kit, executor, followed, "main");
  await kit.within("stop()", executor.stop());
  for (const call of [followed.result, ...others]) {
    await kit.rejects(ExecutorStoppedError, "a call under way", call);
  }
}
