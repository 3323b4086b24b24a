import { existsSync } from "node:fs";
import path from "node:path";
import { Transform, type TransformCallback } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { hasVariable, listProcesses, timeIsUp } from "@fenced/executor-kit";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { isAlive } from "../support/is-alive.ts";
import { openStatefulPlace, type StatefulPlace } from "../support/stateful-place.ts";

/** Passes on what a supervisor sends; what it holds back arrives in one piece. */
class HoldingRelay extends Transform {
  #held: Buffer[] | undefined;

  hold(): void {
    this.#held = [];
  }

  /** Bytes that are held back. */
  get held(): number {
    return (this.#held ?? []).reduce((sum, { length }) => sum + length, 0);
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    this.push(Buffer.concat(held));
  }

  override _transform(chunk: Buffer, _: BufferEncoding, done: TransformCallback): void {
    if (this.#held) this.#held.push(chunk);
    else this.push(chunk);
    done();
  }
}

async function untilDead(pid: number): Promise<void> {
  while (await isAlive(pid)) await sleep(20);
}

/** The end of what a block does before its time is up. */
const begun = "open('begun', 'w').close()";

/** Runs a block that times out once it has begun, and expects that this ends its session. @returns what it printed. */
async function timeOut(
  place: StatefulPlace,
  code: string,
  hasBegun: () => boolean | Promise<boolean> = () => existsSync(path.join(place.place.directory, "begun")),
): Promise<string> {
  const controller = new AbortController();
  const running = place.run(code, { signal: controller.signal });
  running.catch(() => {});
  await expect.poll(hasBegun).toBe(true);
  controller.abort(timeIsUp);
  const { exitCode, stateLost, stdout } = await running;
  expect({ exitCode, stateLost }).toEqual({ exitCode: 137, stateLost: true });
  return stdout;
}

async function pidOf(place: StatefulPlace): Promise<number> {
  return Number((await place.run("import os; print(os.getpid())")).stdout);
}

describe.skipIf(process.platform !== "linux")("a stateful session", needs("python3"), () => {
  it("keeps variables, imports and its own environment, and gets the streams and variables of each block", async () => {
    const place = await openStatefulPlace();
    await place.run("import os, sys\nx = 40\nos.environ['OWN'] = 'kept'\ndef f(): return x + 2");
    const code = "print(f(), os.environ['OWN'], os.environ['GIVEN'], input(), sys.stdin.read(), __name__, sys.argv)";
    const first = await place.run(code, { env: { GIVEN: "one" }, stdin: "a\nb" });
    expect(first).toMatchObject({ stdout: "42 kept one a b __main__ ['']\n", stderr: "", exitCode: 0 });
    expect((await place.run("print(os.environ.get('GIVEN'), sys.stdin.read() == '')")).stdout).toBe("None True\n");
    expect((await place.run("'decimal' in sys.modules")).stdout).toBe("True\n");
  });

  it("shows the last expression's value, awaits at the top level, and ends blocks like programs", async () => {
    const place = await openStatefulPlace();
    expect((await place.run("x = 6\nx * 7")).stdout).toBe("42\n");
    expect((await place.run("x * 7;")).stdout).toBe("");
    expect((await place.run("None")).stdout).toBe("");
    expect((await place.run("import asyncio\nawait asyncio.sleep(0, 'later')")).stdout).toBe("'later'\n");
    const ends: Record<string, number> = {
      "sys.exit(3)": 3,
      "sys.exit()": 0,
      "sys.exit('why')": 1,
      "raise KeyboardInterrupt": 130,
    };
    for (const [code, exitCode] of Object.entries(ends)) {
      expect(await place.run(`import sys\n${code}`)).toMatchObject({ exitCode, stateLost: false });
    }
    const failed = await place.run("def f():\n    return 1 / 0\n\nf()");
    const number = /block (\d+)/.exec(failed.stderr)?.[1];
    expect(failed.stderr.replace(/^ +[~^]+\n/gm, "")).toBe(`Traceback (most recent call last):
  File "<block ${number}>", line 4, in <module>
    f()
  File "<block ${number}>", line 2, in f
    return 1 / 0
ZeroDivisionError: division by zero
`);
    expect((await place.run("def")).stderr).toContain("SyntaxError");
    expect((await place.run("x")).stdout).toBe("6\n");
  });

  it("survives a fork in the program, closed streams and much output", async () => {
    const place = await openStatefulPlace();
    const forked =
      "import os, sys\npid = os.fork()\nsys.stdout.write('child\\n' if pid == 0 else 'parent\\n')\nif pid: os.waitpid(pid, 0)";
    expect((await place.run(forked)).stdout.split("\n").toSorted()).toEqual(["", "child", "parent"]);
    await place.run("sys.stdout.close(); os.close(2)");
    expect(await place.run("print('out'); print('err', file=sys.stderr)")).toMatchObject({
      stdout: "out\n",
      stderr: "err\n",
    });
    expect((await place.run("print('x' * 3_000_000)")).stdout.length).toBe(3_000_001);
    expect(place.losses).toEqual([]);
  });

  it("reports lost variables when its process ends, in a block or not, and continues with new ones", async () => {
    const place = await openStatefulPlace();
    await place.run("import os, threading, time\nx = 1");
    expect(await place.run("os._exit(7)")).toMatchObject({ exitCode: 7, stateLost: true });
    expect(await place.run("x")).toMatchObject({ exitCode: 1, stateLost: false });
    expect(await place.run("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")).toMatchObject({
      exitCode: 139,
      stateLost: true,
    });
    const pid = await pidOf(place);
    process.kill(pid, "SIGKILL");
    while (place.losses.length < 3) await sleep(10);
    expect(place.losses.map((reason) => reason.includes("while it ran a block"))).toEqual([true, true, false]);
    expect((await place.run("print('new')")).stdout).toBe("new\n");
  });

  it("is noticed to have ended even if that arrives together with its first sign of life", async () => {
    const relay = new HoldingRelay();
    const place = await openStatefulPlace(relay);
    const leaving = new AbortController();
    await place.run("print(1)");
    const { below } = await place.python.current.ready(leaving.signal);
    const { supervisor, program } = below.interpreters();
    const others = new Set((await listProcesses()).map(({ pid }) => pid));
    relay.hold();
    const opening = supervisor.openInterpreter({ ...program, env: { ...program.env, DYING: "yes" } }, leaving.signal);
    await expect.poll(() => relay.held).toBeGreaterThan(0);
    const said = relay.held;
    const dying = (await listProcesses()).filter(({ pid }) => !others.has(pid) && hasVariable(pid, "DYING", "yes"));
    expect(dying).not.toEqual([]);
    for (const { pid } of dying) process.kill(pid, "SIGKILL");
    await expect.poll(() => relay.held).toBeGreaterThan(said);
    relay.release();
    const interpreter = await opening;
    expect(await interpreter.ended).toBeUndefined();
    expect(interpreter.isOver).toBe(true);
  });

  it("is killed with a block that times out and all that it started, but not what an earlier block started", async () => {
    const place = await openStatefulPlace();
    const start =
      "import subprocess, sys, time\nprint(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True, env={}).pid, flush=True)";
    const earlier = Number((await place.run(start)).stdout);
    const pid = await pidOf(place);
    const loop = "while True:\n    try: time.sleep(600)\n    except BaseException: pass";
    const own = Number(await timeOut(place, `${start}\n${begun}\n${loop}`));
    expect([await isAlive(own), await isAlive(pid), await isAlive(earlier)]).toEqual([false, false, true]);
    await place.place.supervisor.reset();
    expect(await isAlive(earlier)).toBe(false);
  });
});

describe.skipIf(process.platform !== "linux")("the end of a fork", needs("python3"), () => {
  it("ends what its blocks have left running, even if its interpreter has ended before", async () => {
    const place = await openStatefulPlace();
    const python = await place.fork();
    const start = `import os, subprocess, sys
print(subprocess.Popen(["sleep", "600"], start_new_session=True).pid, flush=True)`;
    const left = Number((await place.run(start, { python })).stdout);
    expect(await place.run("os._exit(0)", { python })).toMatchObject({ stateLost: true });
    expect(await isAlive(left)).toBe(true);
    await python.end();
    expect(await isAlive(left)).toBe(false);
    // What is over ends at once, and again.
    await python.end();
    expect((await place.run("print(1)")).stdout).toBe("1\n");
  });
});

describe.skipIf(process.platform !== "linux")("hostile code in a stateful session", needs("python3"), () => {
  it("that writes to all descriptors ends its session, and forges no later result", async () => {
    const place = await openStatefulPlace();
    const code = `import os
for each in os.listdir("/proc/self/fd"):
    try: int(each) > 2 and os.write(int(each), b"\\x00\\x00\\x00\\x00" + b"x" * 4000)
    except OSError: pass
`;
    const { stderr, stateLost } = await place.run(code);
    expect(stderr).toContain("the Python session was ended");
    expect(stateLost).toBe(true);
    expect(await place.run("print('next')")).toMatchObject({ stdout: "next\n", exitCode: 0, stateLost: false });
  });

  it("that forges its own end loses at most its session", async () => {
    const place = await openStatefulPlace();
    const forged =
      "import os, time\nfor each in range(498, 510):\n    try: os.write(each, bytes(4))\n    except OSError: pass\ntime.sleep(1)";
    await place.run(forged);
    const next = await place.run("print('next')");
    // The block runs in the session that ends, or in the one after it.
    expect([next.stdout, next.stateLost]).toEqual(next.exitCode === 0 ? ["next\n", false] : ["", true]);
    expect(await place.run("print('last')")).toMatchObject({ stdout: "last\n", exitCode: 0 });
  });

  it.each([
    ["closes all descriptors", "import os\nos.closerange(3, 2000)"],
    ["kills the shepherd", "import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(600)"],
    [
      "opens other files in place of what it has closed",
      "import os\nos.closerange(3, 2000)\nkept = [open('/dev/zero', 'r+b') for _ in range(600)]",
    ],
  ])("that %s ends its session", async (_, code) => {
    const place = await openStatefulPlace();
    const pid = await pidOf(place);
    expect(await place.run(code)).toMatchObject({ stateLost: true });
    await untilDead(pid);
    expect(await place.run("print('next')")).toMatchObject({ stdout: "next\n", exitCode: 0, stateLost: false });
  });

  it("that stops itself is killed at its time limit", async () => {
    const place = await openStatefulPlace();
    const pid = await pidOf(place);
    const isStopped = async (): Promise<boolean> =>
      (await listProcesses()).some((each) => each.pid === pid && each.stopped);
    await timeOut(place, "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", isStopped);
    expect(await isAlive(pid)).toBe(false);
    expect((await place.run("print('next')")).stdout).toBe("next\n");
  });
});

describe.skipIf(process.platform !== "linux")("a fork of a session", needs("python3"), () => {
  it("copies the variables, and then changes and ends independently", async () => {
    const place = await openStatefulPlace();
    await place.run("import os\nx = [1]");
    const first = await place.fork();
    const second = await place.fork(first);
    await place.run("x.append(2)", { python: first });
    expect((await place.run("x")).stdout).toBe("[1]\n");
    expect((await place.run("x", { python: first })).stdout).toBe("[1, 2]\n");
    expect((await place.run("x", { python: second })).stdout).toBe("[1]\n");
    // First ends the one between them, then the original.
    expect(await place.run("os._exit(5)", { python: first })).toMatchObject({ exitCode: 5, stateLost: true });
    await timeOut(place, `${begun}\nwhile True: pass`);
    expect((await place.run("x", { python: second })).stdout).toBe("[1]\n");
    await second.end();
    await first.end();
  });

  it("is not a child of the program, and blocks run in both at the same time", async () => {
    const place = await openStatefulPlace();
    await place.run("import os, time");
    const fork = await place.fork();
    const code = "try:\n    os.waitpid(-1, os.WNOHANG)\nexcept ChildProcessError:\n    print('none')";
    const outcomes = await Promise.all([place.run(code), place.run(code, { python: fork })]);
    expect(outcomes.map(({ stdout }) => stdout)).toEqual(["none\n", "none\n"]);
    const meet = (mine: string, theirs: string) =>
      `open("${mine}", "w").close()\nwhile not os.path.exists("${theirs}"): time.sleep(0.01)`;
    await Promise.all([place.run(meet("a", "b")), place.run(meet("b", "a"), { python: fork })]);
  });

  it("ends with everything that its blocks left running, but nothing of the original", async () => {
    const place = await openStatefulPlace();
    const start =
      "import subprocess, sys\nprint(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True).pid)";
    const ofOriginal = Number((await place.run(start)).stdout);
    const fork = await place.fork();
    const ofFork = Number((await place.run(start, { python: fork })).stdout);
    await fork.end();
    expect([await isAlive(ofFork), await isAlive(ofOriginal)]).toEqual([false, true]);
    expect(place.losses).toEqual([]);
  });

  it("works even if the program has replaced os.fork and has threads", async () => {
    const place = await openStatefulPlace();
    await place.run(
      "import os, threading, time\nos.fork = lambda: 1 / 0\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
    );
    const fork = await place.fork();
    expect((await place.run("threading.active_count()", { python: fork })).stdout).toBe("1\n");
    expect((await place.run("threading.active_count()")).stdout).toBe("2\n");
  });

  it("is undone if its caller aborts, even if the session does not answer", async () => {
    const place = await openStatefulPlace();
    const pid = await pidOf(place);
    const processes = async () =>
      (await listProcesses()).filter((each) => hasVariable(each.pid, "HOME", place.place.home)).length;
    const before = await processes();
    process.kill(pid, "SIGSTOP");
    await expect(place.fork(place.python, AbortSignal.timeout(200))).rejects.toThrow("aborted due to timeout");
    process.kill(pid, "SIGCONT");
    // The session handles the cancelled fork first, then the block.
    expect((await place.run("import os; os.getpid()")).stdout).toBe(`${pid}\n`);
    while ((await processes()) !== before) await sleep(20);
  });
});
