import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import {
  BackendUnavailableError,
  ExecutorStoppedError,
  hostFunction,
  InvalidInputError,
  SessionInUseError,
  type SessionHandle,
} from "@fenced/core";
import { z } from "zod";
import type { CaseContext } from "../case-context.ts";
import type { ConformanceCase, ConformanceGroup } from "../conformance-case.ts";
import { hostFunctionsIn, keepsAlive, language, stateful } from "../needs.ts";
import { assertStopped, workspaceHeartbeat } from "../observe/heartbeat.ts";
import { HostProgram } from "../observe/host-program.ts";
import { connect, detach, handOver, keepAliveMs, reportedHandle, start } from "../observe/kept-session.ts";
import { withDoubledTime } from "../observe/until-running.ts";
import { handedOver } from "./connected-programs.ts";

/** Much longer than necessary, for machines that are busy with other things. */
const goneWithinMs = 60_000;

/** Runs blocks in another program until `probe` says so, and kills that; returns the handle of its session. */
async function diedProgram(
  kit: CaseContext,
  calls: readonly string[][],
  probe: (reports: readonly unknown[]) => true | undefined,
): Promise<SessionHandle> {
  const temporary = await kit.directory();
  const programs = calls.map((statements) => [kit.language.program(...statements)]);
  await using host = new HostProgram(kit, { options: { keepAliveMs }, calls: programs, temporary, end: "wait" });
  await host.until("the blocks have run", () => probe(host.reports));
  await host.kill("SIGKILL");
  return reportedHandle(host.reports);
}

const needs = [keepsAlive];

const survives: ConformanceCase = {
  name: "a session survives kill -9 of its program: files, variables and what blocks left running",
  needs,
  async run(kit) {
    const { language: code, capabilities } = kit;
    const setUp = [code.writeFile("kept.txt", "kept"), ...(capabilities.stateful ? [code.assign("kept", "41")] : [])];
    const handle = await diedProgram(kit, [setUp, [code.spawnBeating("left", "new-session")]], (reports) =>
      reports.length === 3 ? true : undefined,
    );
    const executor = await connect(kit, handle);
    assert.equal((await kit.succeedWith(executor, code.printFile("kept.txt"))).output.trim(), "kept");
    if (capabilities.stateful) {
      const result = await kit.succeedWith(executor, code.printAssigned("kept"));
      assert.match(result.output, /41/);
      assert.equal(result.stateLost, false);
    }
    const heartbeat = workspaceHeartbeat(executor, "left");
    const count = (await heartbeat.count()) ?? 0;
    await kit.eventually("what a block left running still runs", async () => {
      return ((await heartbeat.count()) ?? 0) > count || undefined;
    });
    assert.ok((await kit.paths(executor)).includes("kept.txt"));
  },
};

const endsBlocks: ConformanceCase = {
  name: "a block that a dead program was waiting for is over when another one has connected",
  needs,
  async run(kit) {
    const { language: code, capabilities } = kit;
    const probe = (reports: readonly unknown[]): true | undefined => (reports.length === 2 ? true : undefined);
    const setUp = [code.writeFile("main", "."), ...(capabilities.stateful ? [code.assign("kept", "41")] : [])];
    const handle = await diedProgram(kit, [setUp, [code.beat("main")]], probe);
    const executor = await connect(kit, handle);
    await assertStopped(workspaceHeartbeat(executor, "main"));
    if (capabilities.stateful) {
      // The block was interrupted, not its interpreter.
      assert.match((await kit.succeedWith(executor, code.printAssigned("kept"))).output, /41/);
    }
  },
};

const oneAtATime: ConformanceCase = {
  name: "one program at a time can use a session, and one that was cut off changes nothing any more",
  needs,
  async run(kit) {
    const { language: code } = kit;
    const first = await start(kit);
    const { handle } = first;
    await kit.succeedWith(first, code.writeFile("kept.txt", "first"));
    await kit.rejects(SessionInUseError, "connectExecutor while it is in use", connect(kit, handle));
    await detach(kit, first);
    await kit.rejects(ExecutorStoppedError, "a call after detach()", kit.run(first, code.program(code.print("x"))));

    const reasons: string[] = [];
    const second = await connect(kit, handle, { onSessionLost: (reason) => reasons.push(reason) });
    assert.equal((await kit.succeedWith(second, code.printFile("kept.txt"))).output.trim(), "first");
    const third = await connect(kit, handle, { takeOver: true });
    await kit.eventually("onSessionLost is called", () => reasons[0]);
    await kit.rejects(ExecutorStoppedError, "a call after it", kit.run(second, code.program(code.print("x"))));
    await kit.rejects(ExecutorStoppedError, "a write after it", second.files.write("kept.txt", "late"));
    await kit.within("stop() of the one that was cut off", second.stop());
    assert.equal((await kit.succeedWith(third, code.printFile("kept.txt"))).output.trim(), "first");
    assert.equal(reasons.length, 1, reasons.join("; "));
  },
};

const endsByItself: ConformanceCase = {
  name: "a session ends by itself, and nothing is left, when nobody comes back in time",
  needs,
  async run(kit) {
    const before = await kit.resources();
    const executor = await kit.create({ keepAliveMs: 500 });
    await kit.succeedWith(executor, kit.language.print("started"));
    const { handle } = executor;
    await detach(kit, executor);
    const end = Date.now() + goneWithinMs;
    await kit.eventually("everything is gone", async () => {
      const now = await kit.resources();
      const left = now.filter((each) => !before.includes(each));
      if (Date.now() > end) assert.deepEqual(left, []);
      return left.length === 0 || undefined;
    });
    if (kit.subject.listResources) {
      await kit.rejects(BackendUnavailableError, "connectExecutor when it is over", connect(kit, handle));
    }
  },
};

const stopEnds: ConformanceCase = {
  name: "stop() ends a session at once, and without the option there is no handle",
  needs,
  async run(kit) {
    const before = await kit.resources();
    const executor = await start(kit);
    const { handle } = executor;
    await kit.within("stop()", executor.stop());
    await kit.rejects(BackendUnavailableError, "connectExecutor after stop()", connect(kit, handle));
    assert.deepEqual(
      (await kit.resources()).filter((each) => !before.includes(each)),
      [],
    );
    const plain = await kit.create();
    await kit.within("start()", plain.start());
    assert.equal(plain.handle, undefined);
    assert.notEqual(plain.capabilities.keepAlive, true);
    await kit.rejects(InvalidInputError, "detach() without the option", plain.detach?.() ?? Promise.resolve());
  },
};

const restarts: ConformanceCase = {
  name: "a session that was connected to restarts, keeps its files, and can be left again",
  needs,
  async run(kit) {
    const { language: code } = kit;
    const first = await start(kit);
    await kit.succeedWith(first, code.writeFile("kept.txt", "kept"));
    const second = await handOver(kit, first);
    await kit.within("restart()", second.restart());
    assert.equal((await kit.succeedWith(second, code.printFile("kept.txt"))).output.trim(), "kept");
    const third = await handOver(kit, second);
    assert.equal((await kit.succeedWith(third, code.printFile("kept.txt"))).output.trim(), "kept");
  },
};

const lostVariables: ConformanceCase = {
  name: "variables that were gone before a program connected are reported",
  needs: [keepsAlive, stateful, language("python")],
  async run(kit) {
    await withDoubledTime(kit, 1000, async (milliseconds) => {
      const first = await start(kit);
      const { handle } = first;
      const dies = `(time.sleep(${milliseconds / 1000}), os._exit(1))`;
      const dying = `import os, threading, time\nthreading.Thread(target=lambda: ${dies}).start()`;
      const before = performance.now();
      await kit.succeed(first, { language: "python", code: dying });
      await detach(kit, first);
      const wasLeftInTime = performance.now() - before < milliseconds;
      await sleep(2 * milliseconds);
      const second = await connect(kit, handle);
      // The interpreter may have ended before the first program left, or be there still.
      const { stateLost } = await kit.run(second, { language: "python", code: "print(1)" });
      if (!(stateLost && wasLeftInTime) && milliseconds * 2 <= kit.patienceMs) {
        await kit.within("stop()", second.stop());
        return { wasEnough: false };
      }
      assert.equal(stateLost, true);
      assert.equal((await kit.succeed(second, { language: "python", code: "print(2)" })).stateLost, false);
      return { wasEnough: true };
    });
  },
};

const submits: ConformanceCase = {
  name: "submit() does not wait for the turn of its run",
  needs: [keepsAlive, stateful],
  async run(kit) {
    const { language: code } = kit;
    const executor = await start(kit);
    const first = await kit.within("submit()", executor.submit([code.program(code.awaitFile("never"))]));
    const second = await kit.within("another submit()", executor.submit([code.program(code.print("second"))]));
    assert.deepEqual([first.state, second.state], ["running", "running"]);
    first.result().catch(() => {});
    await kit.within("cancel()", first.cancel());
    assert.equal((await kit.within("the result", second.result())).output, "second\n");
  },
};

const functions: ConformanceCase = {
  name: "host functions are those of the program that is connected",
  needs: [keepsAlive, hostFunctionsIn("python")],
  async run(kit) {
    const named = (answer: string) =>
      hostFunction({
        name: "who",
        description: "Says who answers.",
        input: z.object({}),
        execute: () => answer,
      });
    const first = await kit.create({ keepAliveMs, functions: [named("first")] });
    const call = { language: "python", code: "from functions import who\nprint(who())" };
    assert.equal((await kit.succeed(first, call)).output, "first\n");
    const second = await handOver(kit, first, { functions: [named("second")] });
    assert.equal((await kit.succeed(second, call)).output, "second\n");
  },
};

const caller = `import os, socket, time
place = os.environ["FENCED_HOST_CALLS"].split("unix:")[1].split()[0]
while True:
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(place)
        open("calls", "a").write(".")
        connection.close()
    except OSError:
        pass
    time.sleep(0.02)`;

const leftCallers: ConformanceCase = {
  name: "what an earlier program left calling host functions does not end the session",
  needs: [keepsAlive, hostFunctionsIn("python")],
  async run(kit) {
    const who = hostFunction({ name: "who", description: "Says who.", input: z.object({}), execute: () => "me" });
    const first = await kit.create({ keepAliveMs, functions: [who] });
    const leave = `import subprocess, sys\nsubprocess.Popen([sys.executable, "-c", ${JSON.stringify(caller)}])`;
    await kit.succeed(first, { language: "python", code: leave });
    await kit.eventually("it calls", async () => (await kit.paths(first)).includes("calls") || undefined);
    const { handle } = first;
    await detach(kit, first);
    const reasons: string[] = [];
    const second = await connect(kit, handle, { onSessionLost: (reason) => reasons.push(reason) });
    const before = (await second.files.read("calls")).length;
    await kit.eventually("it calls again", async () => (await second.files.read("calls")).length > before || undefined);
    assert.equal((await kit.succeed(second, { language: "python", code: "print('fine')" })).output, "fine\n");
    assert.deepEqual(reasons, []);
  },
};

/** Looks for the key, which is given backwards so that the program itself does not contain it. */
const search = (reversed: string): string => `
import base64, glob, os, time
key = "${reversed}"[::-1]
raw = base64.b64decode(key)
forms = [raw, key.encode(), raw.hex().encode()]
own = str(os.getpid())
found, seen = [], 0
places = [each for name in ("environ", "cmdline", "maps", "mem") for each in glob.glob("/proc/[0-9]*/" + name)]
# Where the place is a whole machine, other programs have a lot in there; the session is new.
temporary = os.environ.get("TMPDIR") or "/tmp"
for pattern in ("/*", "/fenced*/*", "/fenced*/*/*"):
    for each in glob.glob(temporary + pattern):
        if os.path.isfile(each) and os.stat(each).st_ctime > time.time() - 300:
            places.append(each)
for place in places:
    if place.split("/")[2] == own:
        continue
    try:
        with open(place, "rb") as file:
            data = file.read(1 << 20)
    except OSError:
        continue
    seen += 1
    found += [place for form in forms if form in data]
print("found", found, seen > 0)
`;

const attack = `
import glob, os, signal, socket, struct
mine = {os.getpid(), os.getppid()}
with open("/proc/net/unix") as file:
    names = {line.split("@", 1)[1].strip() for line in file if "@fenced" in line}
for name in names:
    for _ in range(40):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(1)
        try:
            connection.connect("\\0" + name)
            reading, writing = os.pipe()
            rights = struct.pack("=2i", reading, writing)
            connection.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
            os.write(writing, b"FENCED-LINK1\\n" + os.urandom(200))
        except OSError:
            pass
print("attacked", len(names))
`;

const hostile: ConformanceCase = {
  name: "code finds the key nowhere, and cannot take the connection over",
  needs: [keepsAlive, language("python")],
  async run(kit) {
    const { language: code } = kit;
    const executor = await start(kit);
    const { handle } = executor;
    const key = Object.values(handle?.session ?? {}).find(
      (each): each is string => typeof each === "string" && /^[A-Za-z0-9+/]{43}=$/.test(each),
    );
    assert.ok(key !== undefined, "the handle's session has no key of 32 bytes in base64");
    const program = search(Array.from(key).toReversed().join(""));
    assert.equal((await kit.succeed(executor, { language: "python", code: program })).output, "found [] True\n");
    const attacked = await kit.succeed(executor, { language: "python", code: attack });
    assert.match(attacked.output, /^attacked \d+\n$/);
    assert.equal((await kit.succeedWith(executor, code.print("goes on"))).output, "goes on\n");
    await detach(kit, executor);
    const again = await connect(kit, handle);
    assert.equal((await kit.succeedWith(again, code.print("goes on"))).output, "goes on\n");
  },
};

/** Sessions that outlive their programs. */
export const keepAlive: ConformanceGroup = {
  name: "session that outlives its program",
  cases: [
    survives,
    endsBlocks,
    oneAtATime,
    endsByItself,
    stopEnds,
    restarts,
    lostVariables,
    submits,
    functions,
    leftCallers,
    hostile,
    handedOver,
  ],
};
