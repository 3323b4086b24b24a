import assert from "node:assert/strict";
import { ExecutorStoppedError, InvalidInputError } from "@fenced/core";
import type { ConformanceGroup } from "../conformance-case.ts";
import { startsPrograms } from "../needs.ts";
import { assertBeats, assertStopped, workspaceHeartbeat } from "../observe/heartbeat.ts";
import { MemoryWatch } from "../observe/memory-watch.ts";
import {
  assertFamilyDead,
  beat,
  restingSize,
  run,
  start,
  startFamily,
  textOf,
  untilGo,
} from "../observe/started-program.ts";
import { programInput } from "./program-input.ts";

const needs = [startsPrograms];
const megabyte = 1_048_576;

/** Programs that run alongside blocks. */
export const startedPrograms: ConformanceGroup = {
  name: "processes",
  waits: true,
  cases: [
    {
      name: "`processes` exists if and only if `capabilities.processes` is true",
      async run(kit) {
        const executor = await kit.shared();
        assert.equal(executor.processes !== undefined, executor.capabilities.processes === true);
        if (executor.processes) assert.equal(typeof executor.workspacePath, "string");
      },
    },
    {
      name: "runs a program with unchanged arguments, and a command line in a shell",
      needs,
      async run(kit) {
        const executor = await kit.shared();
        const words = ["a b", "$HOME", "*", "", "'", "-n", "ä\nö"];
        const [listed, piped] = await Promise.all([
          run(kit, executor, { command: ["printf", "<%s>", ...words] }),
          run(kit, executor, { command: "printf one | tr o O; echo two >&2; exit 7" }),
        ]);
        assert.deepEqual(listed, { stdout: words.map((each) => `<${each}>`).join(""), stderr: "", exitCode: 0 });
        assert.deepEqual(piped, { stdout: "One", stderr: "two\n", exitCode: 7 });
      },
    },
    {
      name: "reports signals and failed starts by conventional exit codes, and explains failed starts",
      needs,
      async run(kit) {
        const executor = await kit.shared();
        await executor.files.write("plain.txt", "text");
        const ends = await Promise.all(
          [
            { command: "kill -TERM $$" },
            { command: ["no-such-program-here"] as const },
            { command: ["./plain.txt"] as const },
            { command: "echo never", cwd: "missing" },
          ].map((options) => run(kit, executor, options)),
        );
        assert.deepEqual(
          ends.map(({ exitCode }) => exitCode),
          [143, 127, 126, 125],
        );
        for (const { stdout, stderr } of ends.slice(1)) {
          assert.equal(stdout, "");
          assert.notEqual(stderr, "");
        }
      },
    },
    {
      name: "starts in the workspace or in `cwd`, with `env` overriding the executor's variables",
      needs,
      async run(kit) {
        const executor = await kit.create({ env: { LEFT: "executor", BOTH: "executor" } });
        await executor.files.write("-in here/file.txt", "found");
        const { stdout } = await run(kit, executor, {
          command: 'pwd; cat file.txt; echo " $LEFT $BOTH"',
          cwd: "-in here",
          env: { BOTH: "program" },
        });
        assert.equal(stdout, `${executor.workspacePath}/-in here\nfound executor program\n`);
        assert.equal((await run(kit, executor, { command: ["pwd"] })).stdout, `${executor.workspacePath}\n`);
        assert.equal((await run(kit, executor, { command: ["pwd"], cwd: "/" })).stdout, "/\n");
      },
    },
    {
      name: "passes `stdin` unchanged, and gives a program empty input without it",
      needs,
      async run(kit) {
        const executor = await kit.shared();
        const bytes = Uint8Array.from({ length: megabyte }, (_, index) => index % 256);
        const started = await start(kit, executor, { command: ["cat"], stdin: bytes });
        const echoed = new Uint8Array(await kit.within("the output", new Response(started.stdout).arrayBuffer()));
        assert.ok(Buffer.from(bytes).equals(echoed), "the bytes that came back are not those that were sent");
        assert.equal((await run(kit, executor, { command: ["cat"], stdin: "grüße" })).stdout, "grüße");
        assert.deepEqual(await run(kit, executor, { command: ["cat"] }), { stdout: "", stderr: "", exitCode: 0 });
      },
    },
    {
      name: "passes output on while the program runs, alongside blocks that see its files",
      needs,
      async run(kit) {
        const executor = await kit.shared();
        const started = await start(kit, executor, { command: `echo ready; echo made > made; ${untilGo}; echo bye` });
        const reader = started.stdout.pipeThrough(new TextDecoderStream()).getReader();
        let text = "";
        while (!text.endsWith("ready\n")) text += (await kit.within("the first line", reader.read())).value ?? "";
        await kit.eventually("the program's file", async () => (await executor.files.list()).length > 0 || undefined);
        const { language } = kit;
        const result = await kit.succeedWith(executor, language.printFile("made"), language.writeFile("go", "."));
        assert.equal(result.output, "made\n");
        assert.deepEqual(await kit.within("wait()", started.wait()), { exitCode: 0 });
        assert.deepEqual(await kit.within("the rest", reader.read()), { done: false, value: "bye\n" });
        assert.equal((await reader.read()).done, true);
      },
    },
    {
      name: "wait() needs no reader for short output, which can be read later",
      needs,
      async run(kit) {
        const executor = await kit.shared();
        const started = await start(kit, executor, { command: "head -c 100000 /dev/zero; echo oops >&2; exit 3" });
        assert.deepEqual(await kit.within("wait()", started.wait()), { exitCode: 3 });
        assert.equal((await textOf(kit, started.stdout)).length, 100_000);
        assert.equal(await textOf(kit, started.stderr), "oops\n");
      },
    },
    {
      name: "kill() ends everything that the program started, and can be called again",
      needs,
      async run(kit) {
        const executor = await kit.create();
        const started = await startFamily(kit, executor);
        await kit.within("kill()", started.kill());
        await assertFamilyDead(executor);
        assert.deepEqual(await kit.within("wait()", started.wait()), { exitCode: 137 });
        assert.equal(await textOf(kit, started.stdout), "");
        await kit.within("kill() again", started.kill());
        assert.equal((await run(kit, executor, { command: "echo still there" })).stdout, "still there\n");
      },
    },
    {
      name: "an abort ends everything that the program started, and wait() rejects with the reason",
      needs,
      async run(kit) {
        const executor = await kit.create();
        const controller = new AbortController();
        const started = await startFamily(kit, executor, controller.signal);
        const reason = new Error("changed my mind");
        controller.abort(reason);
        await assert.rejects(kit.within("wait()", started.wait()), (error) => error === reason);
        await assertFamilyDead(executor);
        const late = start(kit, executor, { command: "echo never", signal: controller.signal });
        await assert.rejects(late, (error) => error === reason);
      },
    },
    {
      name: "restart() and stop() end programs, and wait() rejects with ExecutorStoppedError",
      needs,
      async run(kit) {
        const executor = await kit.create();
        const first = await startFamily(kit, executor);
        await kit.within("restart()", executor.restart());
        await assert.rejects(kit.within("wait()", first.wait()), (error) => ExecutorStoppedError.isInstance(error));
        await assertFamilyDead(executor);
        const second = await start(kit, executor, { command: `echo said; ${untilGo}` });
        const reader = second.stdout.getReader();
        assert.equal(Buffer.from((await kit.within("output", reader.read())).value ?? []).toString(), "said\n");
        const waiting = second.wait();
        waiting.catch(() => {});
        await kit.within("stop()", executor.stop());
        await assert.rejects(kit.within("wait()", waiting), (error) => ExecutorStoppedError.isInstance(error));
        assert.equal((await kit.within("the end of the output", reader.read())).done, true);
        const late = start(kit, executor, { command: "echo never" });
        await assert.rejects(late, (error) => ExecutorStoppedError.isInstance(error));
      },
    },
    {
      name: "many programs run at once, each with its own output and exit code",
      needs,
      async run(kit) {
        const executor = await kit.shared();
        const started = await Promise.all(
          Array.from({ length: 12 }, (_, index) =>
            start(kit, executor, { command: `${untilGo}; echo ${index}; exit ${index}` }),
          ),
        );
        await executor.files.write("go", ".");
        const ends = await Promise.all(started.map((each) => kit.within("wait()", each.wait())));
        assert.deepEqual(
          ends.map(({ exitCode }) => exitCode),
          [...started.keys()],
        );
        const texts = await Promise.all(started.map((each) => textOf(kit, each.stdout)));
        assert.deepEqual(
          texts,
          [...started.keys()].map((index) => `${index}\n`),
        );
      },
    },
    {
      name: "a program whose output nobody reads waits without taking memory, and continues when it is cancelled",
      needs,
      async run(kit) {
        const executor = await kit.create();
        await executor.start();
        using memory = new MemoryWatch();
        const command = "while :; do head -c 65536 /dev/zero; printf . >> written; done";
        const started = await start(kit, executor, { command });
        const size = await restingSize(kit, executor, "written");
        assert.ok(size * 65_536 < 16 * megabyte, `the program wrote ${size} times 64 KiB that nobody read`);
        await started.stdout.cancel();
        const heartbeat = workspaceHeartbeat(executor, "written");
        await kit.eventually("it goes on", async () => ((await heartbeat.count()) ?? 0) > size + 200 || undefined);
        await kit.within("kill()", started.kill());
        assert.ok(memory.peak() < 32 * megabyte, `${memory.peak()} bytes were kept`);
      },
    },
    {
      name: "kill() and stop() work even if nobody reads the output",
      needs,
      async run(kit) {
        const executor = await kit.create();
        const command = "while :; do head -c 65536 /dev/zero; printf . >> written; done";
        const killed = await start(kit, executor, { command });
        await restingSize(kit, executor, "written");
        await kit.within("kill()", killed.kill());
        assert.deepEqual(await killed.wait(), { exitCode: 137 });
        const stopped = await start(kit, executor, { command });
        stopped.wait().catch(() => {});
        await kit.within("stop()", executor.stop());
        await assert.rejects(kit.within("wait()", stopped.wait()), (error) => ExecutorStoppedError.isInstance(error));
      },
    },
    {
      name: "closing its outputs does not end a program, and wait() does not wait for what it left running",
      needs,
      async run(kit) {
        const executor = await kit.create();
        const closed = await start(kit, executor, { command: `exec >&- 2>&-; printf . > closed; ${untilGo}; exit 3` });
        await kit.eventually("it has closed them", () => workspaceHeartbeat(executor, "closed").count());
        const left = await start(kit, executor, { command: `sh -c '${beat("left")}' & exit 4` });
        assert.deepEqual(await kit.within("wait()", left.wait()), { exitCode: 4 });
        await assertBeats(kit, workspaceHeartbeat(executor, "left"));
        await executor.files.write("go", ".");
        assert.deepEqual(await kit.within("wait()", closed.wait()), { exitCode: 3 });
        await kit.within("restart()", executor.restart());
        await assertStopped(workspaceHeartbeat(executor, "left"));
      },
    },
    {
      name: "invalid options throw an InvalidInputError that names them",
      needs,
      async run(kit) {
        const executor = await kit.shared();
        const wrong: readonly (readonly [unknown, RegExp])[] = [
          [undefined, /processes\.start/],
          [{}, /command/],
          [{ command: [] }, /command/],
          [{ command: "" }, /command/],
          [{ command: ["a\0b"] }, /NUL/],
          [{ command: "ls", cwd: "" }, /cwd/],
          [{ command: "ls", env: { "A=B": "1" } }, /env/],
          [{ command: "ls", stdin: 7 }, /stdin/],
          [{ command: "ls", signal: {} }, /signal/],
          [{ command: "ls", directory: "/" }, /directory/],
        ];
        for (const [options, reason] of wrong) {
          const { processes } = executor;
          const { start: untyped }: { start?: unknown } = { start: processes?.start.bind(processes) };
          assert.ok(typeof untyped === "function");
          const call = Promise.resolve(Reflect.apply(untyped, undefined, [options]));
          await kit.rejects(InvalidInputError, `start(${JSON.stringify(options)})`, call, reason);
        }
      },
    },
    ...programInput,
  ],
};
