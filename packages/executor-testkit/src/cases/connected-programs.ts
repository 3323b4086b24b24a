import assert from "node:assert/strict";
import { type CodeExecutor, ExecutorStoppedError, type ExecutorProcesses, InvalidInputError } from "@fenced/core";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { hasTerminals, keepsAlive, learnsIds } from "../needs.ts";
import { assertBeats, workspaceHeartbeat } from "../observe/heartbeat.ts";
import { detach, connect as connectSession, start as startSession } from "../observe/kept-session.ts";
import { beat, restingSize, run, start, textOf, untilGo } from "../observe/started-program.ts";
import { withDoubledTime } from "../observe/until-running.ts";

const needs = [learnsIds];

function processesOf({ processes }: CodeExecutor): ExecutorProcesses {
  assert.ok(processes, "an executor with `capabilities.processes` has `processes`");
  return processes;
}

function idOf({ pid }: { readonly pid: number | undefined }): number {
  assert.ok(pid !== undefined && Number.isSafeInteger(pid) && pid > 1, `the process id is ${pid}`);
  return pid;
}

const listed: ConformanceCase = {
  name: "are listed while they run, and no others",
  needs,
  async run(kit) {
    const executor = await kit.create();
    const { language } = kit;
    assert.deepEqual(await processesOf(executor).list(), []);
    const before = Date.now();
    const one = await start(kit, executor, { command: `echo $$ > id; ${untilGo}`, cwd: "." });
    const other = await start(kit, executor, { command: ["sh", "-c", untilGo, "x".repeat(10_000)] });
    await kit.succeedWith(executor, language.print("a block"));
    const list = await kit.within("list()", processesOf(executor).list());
    assert.deepEqual(
      list.map(({ pid }) => pid),
      [idOf(one), idOf(other)],
    );
    const [first, second] = list;
    assert.deepEqual(
      { ...first, startedAt: 0 },
      {
        pid: one.pid,
        command: `echo $$ > id; ${untilGo}`,
        cwd: ".",
        startedAt: 0,
        pty: false,
      },
    );
    const at = Number(first?.startedAt);
    assert.ok(at >= before && at <= Date.now(), `it started at ${at}`);
    assert.ok(JSON.stringify(second?.command).length < 5000, "a long command is cut off");
    const written = await kit.eventually("its own id", async () => {
      const isThere = (await kit.paths(executor)).includes("id");
      return isThere ? Buffer.from(await executor.files.read("id")).toString() || undefined : undefined;
    });
    assert.equal(Number(written), one.pid);
    await executor.files.write("go", ".");
    await Promise.all([kit.within("wait()", one.wait()), kit.within("wait()", other.wait())]);
    assert.deepEqual(await processesOf(executor).list(), []);
  },
};

const several: ConformanceCase = {
  name: "have any number of readers and writers, and run on when one leaves",
  needs,
  async run(kit) {
    const executor = await kit.create();
    const owner = await start(kit, executor, { command: "echo early; cat; exit 6", stdin: true });
    const first = owner.stdout.pipeThrough(new TextDecoderStream()).getReader();
    assert.equal((await kit.within("the first line", first.read())).value, "early\n");
    const connections = await Promise.all([1, 2, 3].map(() => processesOf(executor).connect(idOf(owner))));
    const [one, two, leaving] = connections;
    assert.ok(one?.stdin && two?.stdin && leaving);
    await leaving[Symbol.asyncDispose]();
    await one.stderr.cancel();
    const [writer, another] = [one.stdin.getWriter(), two.stdin.getWriter()];
    await writer.write(new TextEncoder().encode("a\n"));
    await another.write(new TextEncoder().encode("b\n"));
    await another.close();
    assert.equal(await textOf(kit, one.stdout), "a\nb\n");
    assert.equal(await textOf(kit, two.stdout), "a\nb\n");
    for (const each of [owner, one, two, leaving]) {
      assert.deepEqual(await kit.within("wait()", each.wait()), { exitCode: 6 });
    }
    const late = await processesOf(executor).connect(idOf(owner));
    assert.equal(await textOf(kit, late.stdout), "");
    assert.deepEqual(await kit.within("wait() after the end", late.wait()), { exitCode: 6 });
    await kit.rejects(InvalidInputError, "connect(1)", processesOf(executor).connect(1), /process id 1/);
  },
};

const waiting: ConformanceCase = {
  name: "wait for a reader that does not read, until it leaves or ends them",
  needs,
  async run(kit) {
    const executor = await kit.create();
    const owner = await start(kit, executor, {
      command: "while :; do head -c 65536 /dev/zero; printf . >> written; done",
    });
    await owner.stdout.cancel();
    const connection = await processesOf(executor).connect(idOf(owner));
    const size = await restingSize(kit, executor, "written");
    await connection[Symbol.asyncDispose]();
    const heartbeat = workspaceHeartbeat(executor, "written");
    await kit.eventually("it goes on", async () => ((await heartbeat.count()) ?? 0) > size + 200 || undefined);
    const killer = await processesOf(executor).connect(idOf(owner));
    await kit.within("kill()", killer.kill());
    assert.deepEqual(await kit.within("wait()", owner.wait()), { exitCode: 137 });
  },
};

const signalled: ConformanceCase = {
  name: "get signals by name, with their process group",
  needs,
  async run(kit) {
    const executor = await kit.create();
    const caught = "trap 'echo got; exit 5' USR1 TERM; echo ready; while :; do sleep 0.05; done";
    for (const signal of ["SIGUSR1", "SIGTERM"] as const) {
      const process = await start(kit, executor, { command: caught });
      const reader = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
      assert.equal((await kit.within("ready", reader.read())).value, "ready\n");
      await process.kill(signal);
      assert.deepEqual(await kit.within("wait()", process.wait()), { exitCode: 5 });
      await process.kill(signal);
    }
    const ended = await start(kit, executor, { command: ["sleep", "1000"] });
    await ended.kill("SIGHUP");
    assert.deepEqual(await kit.within("wait()", ended.wait()), { exitCode: 129 });
    const stubborn = await start(kit, executor, { command: `trap '' TERM; ${beat("stubborn")}` });
    await assertBeats(kit, workspaceHeartbeat(executor, "stubborn"));
    await stubborn.kill("SIGTERM");
    await assertBeats(kit, workspaceHeartbeat(executor, "stubborn"));
    const { kill: untyped }: { kill?: unknown } = { kill: stubborn.kill.bind(stubborn) };
    assert.ok(typeof untyped === "function");
    for (const wrong of ["TERM", "SIGRTMIN", "", 15, "constructor"]) {
      const call = Promise.resolve(Reflect.apply(untyped, undefined, [wrong]));
      await kit.rejects(InvalidInputError, `kill(${JSON.stringify(wrong)})`, call, /signal/);
    }
    await kit.within("kill()", stubborn.kill("SIGKILL"));
    assert.deepEqual(await kit.within("wait()", stubborn.wait()), { exitCode: 137 });
  },
};

const limited: ConformanceCase = {
  name: "end when their time is up, and have one output if they are `merged`",
  needs,
  async run(kit) {
    const executor = await kit.shared();
    const { said } = await withDoubledTime(kit, 2000, async (timeoutMs) => {
      const late = await start(kit, executor, { command: "echo said; sleep 1000", timeoutMs });
      assert.deepEqual(await kit.within("wait()", late.wait()), { exitCode: 137, timedOut: true });
      const text = await textOf(kit, late.stdout);
      return { wasEnough: text !== "", said: text };
    });
    assert.equal(said, "said\n");
    const merged = { command: "for i in 1 2 3; do echo out $i; echo err $i >&2; done", merged: true };
    assert.deepEqual(await run(kit, executor, { ...merged, timeoutMs: 600_000 }), {
      stdout: "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n",
      stderr: "",
      exitCode: 0,
    });
    const missing = await run(kit, executor, { ...merged, cwd: "missing" });
    assert.deepEqual([missing.exitCode, missing.stderr], [125, ""]);
    assert.notEqual(missing.stdout, "");
  },
};

/** A case of sessions that outlive their program. */
export const handedOver: ConformanceCase = {
  name: "programs that it has started go on for the next program of a session, which finds them, reads them and writes to them",
  needs: [keepsAlive, hasTerminals],
  async run(kit) {
    const first = await startSession(kit);
    const cat = await start(kit, first, { command: 'while read line; do echo "<$line>"; done; exit 9', stdin: true });
    const loud = await start(kit, first, { command: "while :; do head -c 65536 /dev/zero; printf . >> loud; done" });
    const terminal = await processesOf(first).start({
      command: "stty -echo; echo on; cat",
      pty: { columns: 80, rows: 24 },
    });
    const short = await start(kit, first, { command: `${untilGo}; exit 7` });
    for (const each of [cat, loud, terminal, short]) each.wait().catch(() => {});
    await restingSize(kit, first, "loud");
    const { handle } = first;
    await detach(kit, first);
    await assert.rejects(cat.wait(), (error) => ExecutorStoppedError.isInstance(error));

    const second = await connectSession(kit, handle);
    const again = processesOf(second);
    const list = await kit.within("list()", again.list());
    assert.deepEqual(
      list.map(({ pid, pty }) => [pid, pty]),
      [cat, loud, terminal, short].map((each) => [each.pid, each === terminal]),
    );
    const reading = await again.connect(idOf(cat));
    assert.ok(reading.stdin);
    const input = reading.stdin.getWriter();
    await input.write(new TextEncoder().encode("again\n"));
    await input.close();
    assert.equal(await textOf(kit, reading.stdout), "<again>\n");
    assert.deepEqual(await kit.within("wait()", reading.wait()), { exitCode: 9 });
    // Nobody reads it, so it does not wait.
    const heartbeat = workspaceHeartbeat(second, "loud");
    const size = (await heartbeat.count()) ?? 0;
    await kit.eventually("it goes on", async () => ((await heartbeat.count()) ?? 0) > size + 200 || undefined);
    const screen = await again.connect(idOf(terminal));
    await screen.resize?.({ columns: 100, rows: 40 });
    const typed = screen.stdin?.getWriter();
    await typed?.write(new TextEncoder().encode("typed\r\u0004"));
    assert.match(await textOf(kit, screen.stdout), /typed\r\n$/);
    const ending = await again.connect(idOf(short));
    await second.files.write("go", ".");
    assert.deepEqual(await kit.within("wait()", ending.wait()), { exitCode: 7 });
    await kit.within("restart()", second.restart());
    assert.deepEqual(await again.list(), []);
  },
};

/** Programs that were started before, and what can be done with them. */
export const connectedPrograms: ConformanceGroup = {
  name: "programs that run",
  waits: true,
  cases: [listed, several, waiting, signalled, limited],
};
