import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { BackendUnavailableError, type CodeExecutor, type CodeResult } from "@fenced/core";
import { listProcesses } from "@fenced/executor-kit";
import type { SshExecutorOptions } from "@fenced/executor-ssh";
import { needs } from "@fenced/test-support";
import { host, SshServer } from "@fenced/test-support/ssh-server";
import { forkerCode } from "@fenced/test-support/warm-python";
import { describe, expect, it, onTestFinished } from "vitest";
import { commandsWith } from "./support/processes.ts";
import { bash, create, gone, server } from "./support/server.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";
import { WarmExecutor } from "./support/warm-executor.ts";

const run = promisify(execFile);

/** An executor whose first block is already forked. */
function warm(options: Partial<SshExecutorOptions> = {}): WarmExecutor {
  const executor = new WarmExecutor({ host, configFile: server?.configFile ?? "", warm: {}, ...options });
  onTestFinished(() => executor.stop());
  return executor;
}

function python(executor: CodeExecutor, code: string, timeoutMs = 60_000): Promise<CodeResult> {
  return executor.executeCodeBlocks([{ language: "python", code }], { timeoutMs });
}

/** The waiting interpreter, if it forked the block's shepherd; otherwise 0. */
async function waiting(executor: CodeExecutor): Promise<number> {
  const [pid = "", isWarm] = (await python(executor, forkerCode)).output.trim().split(" ");
  return isWarm === "True" ? Number(pid) : 0;
}

/** Finds the processes above the block: its shepherd, the waiting interpreter (`template`) and the supervisor. */
const findOthers = `
import os, signal, subprocess, sys, time
def parent(pid):
    return int(open("/proc/%d/stat" % pid).read().rpartition(")")[2].split()[1])
shepherd = os.getppid()
template = parent(shepherd)
supervisor = parent(template)
`;

/** A word that identifies a process. */
function seconds(): string {
  return String(Math.floor(1_000_000 + Math.random() * 8_000_000));
}

async function breakConnection(): Promise<void> {
  for (const pid of (await server?.connections()) ?? []) process.kill(pid, "SIGKILL");
}

describe("warm Python over ssh", needs("ssh", "python3", "bash"), () => {
  it("is off by default", async () => {
    const executor = create();
    for (let block = 0; block < 3; block += 1) expect(await waiting(executor)).toBe(0);
    await executor.stop();
    await gone();
  });

  it("preloads modules, and a block sees nothing of earlier ones", async () => {
    const executor = warm({ warm: { preload: ["decimal"] } });
    const code = "import sys\nprint('decimal' in sys.modules, 'left' in globals())\nleft = 1";
    const outputs = [await python(executor, code), await python(executor, code)].map(({ output }) => output);
    expect(outputs).toEqual(["True False\n", "True False\n"]);
    expect(await waiting(executor)).toBeGreaterThan(0);
  });

  it("gives programs the account's variables and a few of its own, with and without it", async () => {
    const workDir = await temporaryDirectory();
    const names = (text: string): Map<string, string> =>
      new Map(text.split("\n").map((line) => [line.split("=")[0] ?? "", line]));
    const plain = names((await run("ssh", ["-F", server?.configFile ?? "", host, "env"])).stdout);
    for (const executor of [create({ workDir }), warm({ workDir })]) {
      const found = names((await bash(executor, "env", { env: { MINE: "x" } })).output);
      const differing = [...new Set([...plain.keys(), ...found.keys()])]
        .filter((name) => plain.get(name) !== found.get(name))
        .toSorted();
      // Python sets LC_CTYPE where the account has no locale; the ports of the connections differ.
      expect(differing.filter((name) => !["LC_CTYPE", "SHLVL", "SSH_CLIENT", "SSH_CONNECTION"].includes(name))).toEqual(
        [
          "FENCED_BLOCK",
          "FENCED_REMOTE",
          "FENCED_SESSION",
          "MINE",
          "PATH",
          "PIP_DISABLE_PIP_VERSION_CHECK",
          "PIP_NO_INPUT",
          "PIP_QUIET",
          "PWD",
          "PYTHONUNBUFFERED",
          "PYTHONUTF8",
        ],
      );
      expect(found.get("PWD")).toBe(`PWD=${workDir}`);
      expect(found.get("PATH")).toBe(`${plain.get("PATH")}:${server?.directory}/home/.local/bin`);
    }
  });

  it("starts behind a login shell that prints a greeting", async () => {
    await using talkative = await SshServer.start(
      `ForceCommand echo Welcome; echo Beware >&2; exec sh -c "$SSH_ORIGINAL_COMMAND"`,
    );
    const executor = warm({ configFile: talkative.configFile });
    expect(await python(executor, "print(6 * 7)")).toMatchObject({ stdout: "42\n", stderr: "" });
    expect(await waiting(executor)).toBeGreaterThan(0);
    await executor.stop();
  });

  it("runs more blocks at once than sshd allows sessions", async () => {
    await using strict = await SshServer.start("MaxSessions 3");
    const executor = warm({ configFile: strict.configFile });
    const numbers = Array.from({ length: 20 }, (_, index) => index);
    const results = await Promise.all(numbers.map((each) => python(executor, `print(${each})`)));
    expect(results.map(({ output }) => output)).toEqual(numbers.map((each) => `${each}\n`));
    await executor.stop();
  });

  it("is kept in a component model, and rejected if it is invalid", () => {
    const { config } = warm({ warm: { preload: ["numpy"] } }).dumpComponent();
    expect(config).toMatchObject({ warm: { preload: ["numpy"] } });
    expect(() => warm({ warm: { preload: ["a b"] } })).toThrow(/must be the name of a Python module/);
  });
});

describe("hostile code, over ssh with warm Python", needs("ssh", "python3", "bash"), () => {
  it.each(["SIGKILL", "SIGSTOP"])("that sends the waiting interpreter %s fails no block", async (name) => {
    const executor = warm();
    const first = await waiting(executor);
    const attack = await python(executor, `${findOthers}\nos.kill(template, signal.${name})\nprint("sent")`);
    expect(attack).toMatchObject({ exitCode: 0, output: "sent\n" });
    expect(await python(executor, "print(6 * 7)")).toMatchObject({ exitCode: 0, output: "42\n" });
    await expect.poll(() => waiting(executor), { timeout: 60_000 }).toBeGreaterThan(0);
    expect(await waiting(executor)).not.toBe(first);
    await executor.stop();
    await gone();
  });

  it("that kills the supervisor ends everything that blocks have started, and the next call gets another", async () => {
    const lost: string[] = [];
    const executor = warm({ workDir: await temporaryDirectory(), onSessionLost: (reason) => lost.push(reason) });
    const [left, word] = [seconds(), seconds()];
    await bash(executor, `touch kept; setsid sleep ${left} >/dev/null 2>&1 &`);
    await expect.poll(() => commandsWith(`sleep ${left}`)).toHaveLength(1);
    const code = `${findOthers}
subprocess.Popen(["sleep", "${word}"], start_new_session=True)
os.kill(supervisor, signal.SIGKILL)
time.sleep(300)`;
    await expect(python(executor, code)).rejects.toThrow(BackendUnavailableError);
    await expect.poll(() => commandsWith(`sleep ${word}`)).toEqual([]);
    await expect.poll(() => commandsWith(`sleep ${left}`)).toEqual([]);
    expect(lost).toEqual([expect.stringMatching(/The supervisor on fenced-test was lost/)]);
    expect(await bash(executor, "ls kept")).toMatchObject({ exitCode: 0, output: "kept\n", stateLost: true });
    await expect.poll(() => waiting(executor), { timeout: 60_000 }).toBeGreaterThan(0);
    await executor.stop();
    await gone();
  });

  it("that stops the supervisor escapes neither its time limit nor stop()", { timeout: 120_000 }, async () => {
    const executor = warm();
    const [first, second] = [seconds(), seconds()];
    const attack = (word: string): string => `${findOthers}
subprocess.Popen(["sleep", "${word}"], start_new_session=True)
os.kill(supervisor, signal.SIGSTOP)
time.sleep(300)`;
    expect(await python(executor, attack(first), 1000)).toMatchObject({ exitCode: 124, timedOut: true });
    expect(await commandsWith(`sleep ${first}`)).toEqual([]);
    expect(await python(executor, "print(6 * 7)")).toMatchObject({ exitCode: 0, output: "42\n" });
    await expect.poll(() => waiting(executor), { timeout: 60_000 }).toBeGreaterThan(0);
    const running = python(executor, attack(second)).catch(String);
    await expect.poll(() => commandsWith(`sleep ${second}`)).toHaveLength(1);
    await executor.stop();
    expect(await running).toMatch(/ExecutorStoppedError/);
    expect(await commandsWith(`sleep ${second}`)).toEqual([]);
    await gone();
  });

  it("does not outlive a broken connection, wherever a forked block hides it", async () => {
    const executor = warm();
    const [word, hidden] = [seconds(), seconds()];
    // One has left its parents, one hides its variables below the block, and one does both and is adopted by the supervisor.
    const code = `${findOthers}
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "${word}"])
    os._exit(0)
subprocess.Popen(["sleep", "${hidden}1"], start_new_session=True, env={})
subprocess.Popen("sleep ${hidden}2 & sleep 0.1", shell=True, start_new_session=True, env={}).wait()
os.kill(shepherd, signal.SIGSTOP)
print("ready", end="", flush=True)
time.sleep(300)`;
    const events = executor.streamCodeBlocks([{ language: "python", code }])[Symbol.asyncIterator]();
    for (;;) {
      const step = await events.next();
      if (step.done === true) throw new Error("it has ended");
      if (step.value.type === "stdout" && step.value.text === "ready") break;
    }
    await breakConnection();
    await expect.poll(() => commandsWith(`sleep ${word}`), { timeout: 60_000 }).toEqual([]);
    await expect.poll(() => commandsWith(`sleep ${hidden}`), { timeout: 60_000 }).toEqual([]);
    await expect(events.next()).rejects.toThrow(/The connection to fenced-test broke/);
    expect(await python(executor, "print(6 * 7)")).toMatchObject({ exitCode: 0, output: "42\n" });
    await expect.poll(() => waiting(executor), { timeout: 60_000 }).toBeGreaterThan(0);
    await executor.stop();
    await gone();
  });

  it("is ended by restart(), even if its shepherd was killed and it hides its variables", async () => {
    const executor = warm();
    const word = seconds();
    const left = `${findOthers}
subprocess.Popen("sleep ${word} >/dev/null 2>&1 & sleep 0.1", shell=True, start_new_session=True, env={}).wait()
print(shepherd)`;
    const { stdout } = await python(executor, left);
    // The block has ended, so nobody looks for what it left when its shepherd dies, and the supervisor adopts that.
    await python(executor, `import os, signal\nos.kill(${Number(stdout)}, signal.SIGKILL)`);
    await expect.poll(async () => (await listProcesses()).some(({ pid }) => pid === Number(stdout))).toBe(false);
    await expect.poll(() => commandsWith(`sleep ${word}`)).toHaveLength(1);
    await executor.restart();
    expect(await commandsWith(`sleep ${word}`)).toEqual([]);
    await expect.poll(() => waiting(executor), { timeout: 60_000 }).toBeGreaterThan(0);
  });
});
