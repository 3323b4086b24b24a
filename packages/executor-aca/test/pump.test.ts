import { BackendUnavailableError, hostFunction, type CodeResult, type ExecutionEvent } from "@fenced/core";
import { jupyterPythons, needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import type { ACADynamicSessionsCodeExecutor } from "../src/index.ts";
import { run, Setting } from "./support.ts";

const pumped = { transport: "pump" } as const;
const python = (code: string) => [{ language: "python", code }];

/** Runs a block, and calls `on` with what it has printed so far each time that it prints. */
async function follow(
  executor: ACADynamicSessionsCodeExecutor,
  code: string,
  on: (printed: string) => Promise<void> | void,
  options: { signal?: AbortSignal; timeoutMs?: number } = {},
): Promise<CodeResult | undefined> {
  let printed = "";
  let last: ExecutionEvent | undefined;
  for await (const event of executor.streamCodeBlocks(python(code), options)) {
    last = event;
    if (event.type !== "stdout") continue;
    printed += event.text;
    await on(printed);
  }
  return last?.type === "result" ? last.result : undefined;
}

/** Counts its calls. */
function counter() {
  const seen: number[] = [];
  const count = hostFunction({
    name: "count",
    description: "Counts.",
    input: { type: "object", properties: { number: { type: "integer" } }, required: ["number"] },
    execute: ({ number }) => seen.push(Number(number)),
  });
  return { count, seen };
}

describe("a pumped block", needs("python3"), () => {
  it("streams its own and its children's output in order while it runs", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor(pumped);
    const code = `import os, subprocess, time
print("one", end="")
os.system("echo two; echo three >&2")
print("four")
while not os.path.exists("go"): time.sleep(0.01)
subprocess.run(["echo", "five"])
print("six")`;
    const result = await follow(executor, code, async (printed) => {
      if (printed.endsWith("four\n")) await executor.files.write("go", "");
    });
    expect(result).toMatchObject({ exitCode: 0, stdout: "onetwo\nfour\nfive\nsix\n", stderr: "three\n" });
  });

  it("supports magics, `await`, values and `exit`, like a cell", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor(pumped);
    const code = "import asyncio\n!echo shell\nawait asyncio.sleep(0, 41) + 1";
    expect(await run(executor, code)).toMatchObject({ exitCode: 0, output: "shell\n42\n" });
    expect((await run(executor, "print('no newline', end='')\n'value'")).output).toBe("no newline\n'value'\n");
    expect(await run(executor, "6 * 7;")).toMatchObject({ exitCode: 0, output: "" });
    expect((await run(executor, "import sys; sys.exit(7)")).exitCode).toBe(7);
    const failed = await run(executor, "def fail():\n    return 1 / 0\n\nfail()");
    expect(failed.exitCode).toBe(1);
    expect(failed.stderr).toMatch(/^Traceback.*\n {2}File "<block \d+>", line 4, in <module>\n[^]*ZeroDivisionError/);
    expect(failed.stderr).not.toContain("<fenced>");
  });

  // The limit also applies to the executor's own requests, the longest of which may take 65 seconds.
  it("may run longer than the service's limit for one request", { timeout: 120_000 }, async ({ skip }) => {
    skip(process.env.FENCED_SUITE !== "full", "takes more than a minute; runs with FENCED_SUITE=full");
    await using setting = await Setting.open({ syncLimitMs: 66_000 });
    const executor = setting.executor(pumped);
    const code = "import time\nfor second in range(14):\n    time.sleep(5)\n    print(second)";
    const result = await run(executor, code, { timeoutMs: 100_000 });
    expect(result.output).toBe(Array.from({ length: 14 }, (_, second) => `${second}\n`).join(""));
  });

  it("can handle signals, although Python allows that only in its main thread", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor(pumped);
    const code = `import os, signal, time
class Late(Exception): pass
def late(*_): raise Late()
print(signal.signal(signal.SIGALRM, late) == signal.SIG_DFL)
signal.alarm(1)
try:
    while True: time.sleep(0.01)
except Late:
    print("late")
try:
    signal.signal(9999, late)
except ValueError:
    print("refused")`;
    expect(await run(executor, code)).toMatchObject({ exitCode: 0, output: "True\nlate\nrefused\n" });
  });

  it("that is aborted ends its children and keeps its session", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor(pumped);
    await run(executor, "value = 42; import subprocess; earlier = subprocess.Popen(['sleep', '100'])");
    const { sessionId } = executor;
    const controller = new AbortController();
    const code = `import subprocess
child = subprocess.Popen(["sleep", "100"])
orphan = subprocess.run("setsid sleep 100 >/dev/null 2>&1 & echo $!", shell=True, stdout=subprocess.PIPE).stdout
print("started")
child.wait()
while True: pass`;
    const aborted = follow(executor, code, () => controller.abort(new Error("enough")), { signal: controller.signal });
    await expect(aborted).rejects.toThrow("enough");
    const state = `import os
print(value, earlier.poll(), *[os.path.exists(f"/proc/{pid}/exe") for pid in (child.pid, int(orphan))])`;
    expect(await run(executor, state)).toMatchObject({ output: "42 None False False\n", stateLost: false });
    expect(executor.sessionId).toBe(sessionId);
  });

  it("that cannot be interrupted loses its session, but no output", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor(pumped);
    await run(executor, "value = 42");
    // Native code that holds Python's lock, so that no other thread of the interpreter runs.
    const code = "import ctypes\nprint('printed')\nctypes.PyDLL(None).sleep(100)";
    const result = await run(executor, code, { timeoutMs: 8000 });
    expect(result).toMatchObject({ timedOut: true, exitCode: 124, stdout: "printed\n", stateLost: true });
    expect((await run(executor, "print('value' in globals())")).output).toBe("False\n");
  });

  it.for(["import os; os._exit(3)", "import os; os.kill(os.getpid(), 9)"])(
    "loses no output when its interpreter ends (%s)",
    async (end) => {
      await using setting = await Setting.open();
      const executor = setting.executor(pumped);
      await executor.start();
      const { sessionId } = executor;
      const code = `import os\nfor n in range(1000): print(n)\nos.system("echo child")\nprint("last")\n${end}`;
      const result = await run(executor, code);
      const numbers = Array.from({ length: 1000 }, (_, n) => `${n}\n`).join("");
      expect(result).toMatchObject({ exitCode: 1, stdout: `${numbers}child\nlast\n` });
      const next = await run(executor, "print(1)");
      expect(next.output).toBe("1\n");
      // The first block to be told that the interpreter has ended says so.
      expect([result.stateLost, next.stateLost].filter((lost) => lost)).toHaveLength(1);
      expect(executor.sessionId).toBe(sessionId);
    },
  );

  it("rejects after the output so far when its session disappears", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor(pumped);
    const code = "import time\nprint('seen')\ntime.sleep(60)";
    let printed = "";
    const lost = follow(executor, code, async (text) => {
      printed = text;
      // Python writes the end of a line by itself.
      if (text.endsWith("\n")) await setting.expire(executor.sessionId);
    });
    await expect(lost).rejects.toSatisfy(BackendUnavailableError.isInstance);
    expect(printed).toBe("seen\n");
    expect(await run(executor, "print(1)")).toMatchObject({ output: "1\n", stateLost: true });
  });
});

describe("a pump under faults", needs("python3"), () => {
  it("transfers all output and host calls exactly once", { timeout: 120_000 }, async () => {
    await using setting = await Setting.open();
    const { count, seen } = counter();
    const executor = setting.executor({ ...pumped, functions: [count], retryForMs: 120_000 });
    await run(executor, "1");
    const rate = 0.08;
    setting.emulator.setFaults([
      { kind: "drop", rate },
      { kind: "drop", afterwards: true, rate },
      { kind: "server-error", rate },
      { kind: "server-error", afterwards: true, rate },
      { kind: "too-many-requests", retryAfterMs: 0, rate },
    ]);
    const code = `from functions import count
for number in range(40):
    print(number, count(number))`;
    const result = await run(executor, code, { timeoutMs: 100_000 });
    setting.emulator.setFaults([]);
    expect(seen).toEqual(Array.from({ length: 40 }, (_, number) => number));
    expect(result).toMatchObject({ exitCode: 0, output: seen.map((number) => `${number} ${number + 1}\n`).join("") });
  });

  it("gives up when the service stays away, and ends the block once it is back", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor({ ...pumped, retryForMs: 500 });
    const code = "import time\nprint('on')\nwhile True: time.sleep(0.01); open('beat', 'w').close()";
    const broken = follow(executor, code, () => setting.emulator.setFaults([{ kind: "server-error" }]));
    await expect(broken).rejects.toSatisfy(BackendUnavailableError.isInstance);
    setting.emulator.setFaults([]);
    const state =
      "import os, time; os.path.exists('beat') and os.remove('beat'); time.sleep(0.3); print(os.path.exists('beat'))";
    expect((await run(executor, state)).output).toBe("False\n");
  });
});

describe("code that attacks its pump", needs("python3"), () => {
  const pump = `import sys, base64, struct
pump = sys.modules["__fenced__"].pump
`;

  const attacks = [
    ["an offset ahead", "pump.step = lambda text: 'fenced %s 9 999999 0 fine ' % pump.secret"],
    ["an answer of another type", "pump.step = lambda text: {'type': 'other'}"],
    ["forged frames", "pump.exchange = lambda *a, **b: (0, 0, b'\\xff' * 1000)"],
  ] as const;
  /** More of the same kinds. */
  const moreAttacks = [
    ["a forged secret", "pump.step = lambda text: 'fenced ' + '0' * 64 + ' 9 0 0 fine '"],
    ["acknowledged bytes that were not sent", "pump.step = lambda text: 'fenced %s 9 0 999999 fine ' % pump.secret"],
    ["a frame that does not end", "pump.exchange = lambda *a, **b: (0, 0, struct.pack('>IBI', 2**31, 19, 1))"],
    [
      "an invalid end of a block",
      "pump.exchange = lambda *a, **b: (0, 0, struct.pack('>IBI', 6, 19, pump.block.number) + b'x')",
    ],
  ] as const;

  it("achieves nothing but the end of its own call", { timeout: 240_000 }, async () => {
    await using setting = await Setting.open();
    const { count, seen } = counter();
    const executor = setting.executor({ ...pumped, functions: [count] });
    const tried = process.env.FENCED_SUITE === "full" ? [...attacks, ...moreAttacks] : attacks;
    for (const [what, attack] of tried) {
      const code = `${pump}open("ran", "a").write("x")\n${attack}\nimport time\ntime.sleep(60)`;
      const attacked = await run(executor, code, { timeoutMs: 10_000 }).catch((error: unknown) => error);
      const ended = BackendUnavailableError.isInstance(attacked) || !(attacked instanceof Error);
      expect([what, ended ? "ended" : attacked]).toEqual([what, "ended"]);
      const after = await run(executor, "from functions import count\nprint(count(5), open('ran').read())");
      expect([what, after.output]).toEqual([what, `${seen.length} ${"x".repeat(seen.length)}\n`]);
    }
    expect(seen).toEqual(tried.map(() => 5));
  });

  it("that damages it loses its session, but neither output nor files", { timeout: 120_000 }, async () => {
    await using setting = await Setting.open();
    const executor = setting.executor(pumped);
    const damages = {
      "the end of the scribe": "os.kill(pump.scribe.pid, 9)",
      "a closed socket": "pump.socket.close()",
      "no pump": "del sys.modules['__fenced__']",
    };
    for (const [index, [what, damage]] of Object.entries(damages).entries()) {
      // Each has its own name, because code that removes a file while it is being written makes the write fail.
      const signal = `go-${index}`;
      const code = `${pump}import os, time
print("printed")
while not os.path.exists("${signal}"): time.sleep(0.01)
${damage}
time.sleep(60)`;
      const damaged = await follow(executor, code, () => executor.files.write(signal, "on"), { timeoutMs: 30_000 });
      const { exitCode, stdout, stderr, stateLost } = damaged ?? {};
      const message = expect.stringContaining("The session was abandoned while the block ran");
      expect([what, exitCode, stdout, stderr, stateLost]).toEqual([what, 1, "printed\n", message, true]);
      const after = await run(executor, `print(open('${signal}').read(), 'pump' in globals())`);
      expect([what, after.output, after.stateLost]).toEqual([what, "on False\n", false]);
    }
  });

  it("does not fail the next block if it killed the scribe between two", async () => {
    await using setting = await Setting.open();
    const executor = setting.executor(pumped);
    const code = `${pump}import os, threading, time
def end():
    while not os.path.exists("over"): time.sleep(0.01)
    pump.scribe.kill()
    pump.scribe.wait()
    open("done", "w").close()
threading.Thread(target=end).start()`;
    expect((await run(executor, code)).exitCode).toBe(0);
    // Not as soon as the block has ended there, because the scribe still has to report that.
    await executor.files.write("over", "");
    await expect.poll(() => executor.files.list().then((files) => files.length), { timeout: 60_000 }).toBe(2);
    expect(await run(executor, "print(1)")).toMatchObject({ exitCode: 0, output: "1\n", stateLost: true });
  });

  it("does not print into the blocks of an executor that takes its session over", async () => {
    await using setting = await Setting.open();
    const former = setting.executor(pumped);
    let next: Promise<CodeResult> | undefined;
    const result = await follow(former, "import time\nprint('former')\ntime.sleep(6)", () => {
      const executor = setting.executor({ ...pumped, sessionId: former.sessionId ?? "" });
      next ??= run(executor, "import os, time\ntime.sleep(6)\nprint('next')\nos.system('echo child');");
    });
    expect(result).toMatchObject({ exitCode: 1, stdout: "former\n", stateLost: false });
    expect(result?.stderr).toContain("Another executor took the session over");
    expect(await next).toMatchObject({ exitCode: 0, output: "next\nchild\n" });
  });
});

describe("figures of a pumped block", needs("jupyter"), () => {
  it("are shown when it ends, and not by the steps in between", async () => {
    await using setting = await Setting.open({ python: jupyterPythons.jupyter });
    const executor = setting.executor(pumped);
    const code = `import time
import matplotlib.pyplot as plt
plt.plot([1, 2, 3])
print("drawn")
time.sleep(1.5)
plt.title(str(len(plt.get_fignums())))
print(plt.get_fignums())`;
    const result = await run(executor, code);
    expect(result).toMatchObject({ exitCode: 0, stdout: "drawn\n[1]\n<Figure size 640x480 with 1 Axes>\n" });
    expect(result.displays.map(({ data }) => Object.keys(data))).toEqual([["image/png", "text/plain"]]);
    expect((await run(executor, "print(plt.get_fignums())")).output).toBe("[]\n");
  });
});
