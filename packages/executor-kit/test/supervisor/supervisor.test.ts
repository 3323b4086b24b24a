import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { access, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import {
  connectSupervisor,
  supervisorCommand,
  type ConnectOptions,
  type ProgramEnd,
  type SupervisedProgram,
  type Supervisor,
  type SupervisorAnswer,
  type SupervisorConfig,
} from "@fenced/executor-kit/supervisor";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { isAlive } from "../support/is-alive.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { TextSink } from "../support/text-sink.ts";

interface Opened extends SupervisorAnswer {
  readonly child: ChildProcess;
  /** The session's directory, and the one in which programs run. */
  readonly directory: string;
  readonly workspace: string;
}

async function open(
  config: Partial<SupervisorConfig> = {},
  options: ConnectOptions = {},
  env = process.env,
): Promise<Opened> {
  const workspace = await temporaryDirectory();
  const directory = path.join(await temporaryDirectory(), "session");
  const [program, ...words] = supervisorCommand({ directory, workspace, ...config });
  const child = spawn(program, words, { stdio: ["pipe", "pipe", "pipe"], env });
  onTestFinished(async () => {
    child.stdin.destroy();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  return { child, directory, workspace, ...(await connectSupervisor(child, options)) };
}

async function opened(config: Partial<SupervisorConfig> = {}, options: ConnectOptions = {}) {
  const { supervisor, ...rest } = await open(config, options);
  if (!supervisor) throw new Error("There is no Python.");
  return { supervisor, ...rest };
}

async function run(
  supervisor: Supervisor,
  script: string,
  more: Partial<SupervisedProgram> = {},
  output = new TextSink(),
): Promise<{ stdout: string; stderr: string; end: ProgramEnd }> {
  const end = await supervisor.run({ argv: ["sh", "-c", script], env: {}, ...more }, output);
  return { stdout: output.stdout, stderr: output.stderr, end };
}

async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe.skipIf(process.platform !== "linux")("a supervisor", needs("python3"), () => {
  it("reports what is installed, and runs programs with input, environment and exit code", async () => {
    const { supervisor, inventory, workspace } = await opened({ programs: ["sh", "no-such-program"] });
    expect(inventory.programs.get("sh")).toMatch(/\/sh$/);
    expect(inventory.programs.has("no-such-program")).toBe(false);
    expect(inventory.owner).toEqual({ uid: process.getuid?.(), gid: process.getgid?.() });
    const script = "pwd; cat; echo $GIVEN >&2; exit 7";
    const { stdout, stderr, end } = await run(supervisor, script, { stdin: "input", env: { GIVEN: "variable" } });
    expect([stdout, stderr]).toEqual([`${workspace}\ninput`, "variable\n"]);
    expect(end).toMatchObject({ exitCode: 7, outOfMemory: false });
    expect((await run(supervisor, "", { argv: ["no-such-program"] })).end.exitCode).toBe(127);
    expect((await run(supervisor, "kill -TERM $$")).end.exitCode).toBe(143);
  });

  it("runs programs concurrently, without losing output", async () => {
    const { supervisor } = await opened();
    const lengths = [1, 70_000, 3_000_000, 0];
    const runs = lengths.map((length) => run(supervisor, `head -c ${length} /dev/zero | tr '\\0' x`));
    expect((await Promise.all(runs)).map(({ stdout }) => stdout.length)).toEqual(lengths);
  });

  it("makes a program wait while nobody reads its output", async () => {
    const { supervisor, workspace } = await opened();
    const controller = new AbortController();
    const script = "while :; do head -c 65536 /dev/zero; printf x >> count; done";
    const output = new TextSink(controller.signal, new Promise(() => {}));
    const running = run(supervisor, script, {}, output);
    await output.begun;
    const count = async (): Promise<number> => (await stat(path.join(workspace, "count"))).size;
    let before = -1;
    // The program stalls when the window is full.
    for (let now = 0; now !== before; now = await count()) {
      before = now;
      await sleep(200);
    }
    expect(before).toBeLessThan(64);
    controller.abort();
    expect((await running).end.exitCode).toBe(137);
  });

  it("says why a program cannot start if too many files are open, and leaves none of them open", async () => {
    const { supervisor, child } = await opened();
    const descriptors = async (): Promise<number> => (await readdir(`/proc/${child.pid}/fd`)).length;
    /** Limits the open files of the supervisor, which must have its own limits again before it is reset. */
    const limit = (files: number | string): void => {
      const code = `import resource as r\nfile = ${child.pid}, r.RLIMIT_NOFILE\nr.prlimit(*file, (${files}, r.prlimit(*file)[1]))`;
      execFileSync("python3", ["-c", code]);
    };
    const own = execFileSync("python3", [
      "-c",
      `import resource as r\nprint(r.prlimit(${child.pid}, r.RLIMIT_NOFILE)[0])`,
    ]);
    const alongside = { label: "label", started: () => {} };
    const kinds = [{}, { alongside }, { alongside: { ...alongside, pty: { columns: 80, rows: 24 } } }];
    await run(supervisor, "true");
    // A program's own descriptors are closed soon after its end.
    await supervisor.reset();
    const before = await descriptors();
    const failed: string[] = [];
    for (const kind of kinds) {
      for (let more = 0; more < 10; more += 1) {
        limit(before + more);
        const error = await errorOf(run(supervisor, "true", kind));
        limit(own.toString());
        if (error !== undefined) failed.push(error instanceof Error ? error.message : "");
        await supervisor.reset();
        expect(await descriptors()).toBe(before);
      }
    }
    expect(failed.length).toBeGreaterThan(8);
    for (const reason of failed) {
      expect(reason).toMatch(/No (?:process could be started|terminal could be opened): .*Too many open files/);
    }
  });

  it("kills everything that a program started when its signal aborts, and nothing else", async () => {
    const { supervisor, workspace } = await opened();
    const other = run(supervisor, "sleep 0.5; echo other");
    const controller = new AbortController();
    const script =
      "(setsid env -i sh -c 'echo $$ > pid; exec sleep 300' &) ; while [ ! -s pid ]; do sleep 0.01; done; echo; sleep 300";
    const output = new TextSink(controller.signal);
    const running = run(supervisor, script, {}, output);
    await output.begun;
    const pid = Number(await readFile(path.join(workspace, "pid"), "utf8"));
    expect(await isAlive(pid)).toBe(true);
    controller.abort();
    expect((await running).end.exitCode).toBe(137);
    expect(await isAlive(pid)).toBe(false);
    expect((await other).stdout).toBe("other\n");
  });

  it("kills a process whose first thread has ended, which looks like a zombie", async () => {
    const { supervisor } = await opened();
    const controller = new AbortController();
    const program = `
import ctypes, os, threading, time
def run():
    while open("/proc/self/stat").read().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    os.write(1, str(os.getpid()).encode())
    time.sleep(1000)
threading.Thread(target=run).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
`;
    const output = new TextSink(controller.signal);
    const running = run(supervisor, `setsid python3 -c '${program}' & wait`, {}, output);
    await output.begun;
    const pid = Number(output.stdout);
    expect(await isAlive(pid)).toBe(true);
    controller.abort();
    expect((await running).end.exitCode).toBe(137);
    expect(await isAlive(pid)).toBe(false);
  });

  it("keeps alive what a program leaves running, until a reset", async () => {
    const { supervisor } = await opened();
    const { stdout } = await run(supervisor, "sleep 300 > /dev/null & echo $!");
    expect(await isAlive(Number(stdout))).toBe(true);
    await supervisor.reset();
    expect(await isAlive(Number(stdout))).toBe(false);
    expect((await run(supervisor, "echo again")).stdout).toBe("again\n");
  });

  it("ends when its input ends, along with its programs and its directory", async () => {
    const { supervisor, child, directory } = await opened();
    const { stdout } = await run(supervisor, "sleep 300 > /dev/null & echo $!");
    await access(directory);
    const lost = errorOf(run(supervisor, "echo $$; sleep 300"));
    child.stdin?.end();
    await once(child, "exit");
    expect(await lost).toSatisfy(BackendUnavailableError.isInstance);
    expect(await isAlive(Number(stdout))).toBe(false);
    await expect(access(directory)).rejects.toThrow("ENOENT");
  });

  it("that is killed fails the running program and every later call", async () => {
    const lost: Error[] = [];
    const { supervisor, child } = await opened(
      {},
      {
        onLost: (error) => {
          lost.push(error);
          supervisor.fail(new Error("explained"));
        },
      },
    );
    const output = new TextSink();
    const failed = errorOf(run(supervisor, "echo $$; exec sleep 300", {}, output));
    await output.begun;
    child.kill("SIGKILL");
    expect(await failed).toEqual(new Error("explained"));
    // Whatever has started the supervisor ends what is left after it.
    process.kill(Number(output.stdout), "SIGKILL");
    expect(lost).toHaveLength(1);
    await expect(run(supervisor, "true")).rejects.toThrow("explained");
    await expect(supervisor.reset()).rejects.toThrow("explained");
  });

  it("uses a socket in a shared directory, but its streams if the socket is a link", async () => {
    const shared = await temporaryDirectory();
    const probe = path.join(shared, ".fenced-test-probe");
    await writeFile(probe, "question");
    const { supervisor, inventory } = await opened({ workspace: shared, probe }, { socket: `${probe}.sock` });
    expect([supervisor.direct, inventory.probe, await readFile(probe, "utf8")]).toEqual([
      true,
      "question",
      "questionr",
    ]);
    expect((await run(supervisor, "head -c 1000000 /dev/zero")).stdout.length).toBe(1_000_000);

    const elsewhere = path.join(await temporaryDirectory(), ".fenced-test-probe.sock");
    await symlink(`${probe}.sock`, elsewhere);
    const second = path.join(shared, ".fenced-test-second");
    await writeFile(second, "question");
    const other = await opened({ workspace: shared, probe: second }, { socket: elsewhere });
    expect(other.supervisor.direct).toBe(false);
    expect((await run(other.supervisor, "echo streams")).stdout).toBe("streams\n");
  });

  it("reports the installed programs and starts no supervisor without Python", async () => {
    const bin = await temporaryDirectory();
    for (const name of ["sh", "mkdir"]) await symlink(`/bin/${name}`, path.join(bin, name));
    const { supervisor, inventory, child } = await open({ programs: ["sh", "python3"] }, {}, { PATH: bin });
    expect(supervisor).toBeUndefined();
    expect([...inventory.programs.keys()]).toEqual(["sh"]);
    expect(inventory.process).toBe(child.pid);
  });

  it("that acknowledges more input than it got is lost, and closes the input", async () => {
    const shell = `printf 'FENCED1\\n\\0\\0\\0\\5\\020\\0\\0\\0\\0'; head -c 100 >/dev/null; printf '\\0\\0\\0\\t\\034\\0\\0\\0\\1\\0\\20\\0\\0'; exec cat >/dev/null`;
    const child = spawn("sh", ["-c", shell]);
    const { supervisor } = await connectSupervisor(child);
    let left = false;
    async function* input(): AsyncGenerator<Uint8Array, void, void> {
      try {
        for (;;) yield new Uint8Array(1000);
      } finally {
        left = true;
      }
    }
    const ended = supervisor ? run(supervisor, "cat", { stdin: input() }) : Promise.resolve();
    await expect(ended).rejects.toThrow("more input than it got");
    await expect.poll(() => left).toBe(true);
    child.kill("SIGKILL");
  });

  it("passes input on while programs run, as fast as they read, and ends it when one stops reading", async () => {
    const { supervisor } = await opened();
    let [given, left] = [0, 0];
    async function* input(most: number): AsyncGenerator<Uint8Array, void, void> {
      try {
        for (; given < most; given += 500_000) yield new Uint8Array(500_000).fill(97);
      } finally {
        left += 1;
      }
    }
    const { stdout } = await run(supervisor, "wc -c", { stdin: input(3_000_000) });
    expect(stdout.trim()).toBe("3000000");
    expect(left).toBe(1);
    given = 0;
    const controller = new AbortController();
    const output = new TextSink(controller.signal);
    const closed = run(supervisor, "exec <&-; sleep 600", { stdin: input(Infinity) }, output);
    await expect.poll(() => left).toBe(2);
    expect(given).toBeLessThan(2_000_000);
    controller.abort();
    expect((await closed).end.exitCode).toBe(137);
  });

  it("that is another program causes an error with that program's output", async () => {
    const child = spawn("sh", ["-c", "echo hello; echo 'no such pod' >&2"]);
    await expect(connectSupervisor(child)).rejects.toThrow(/The supervisor ended: no such pod\s+hello/);
    const noise = spawn("sh", ["-c", "printf 'FENCED1\\n'; exec cat /dev/zero"]);
    await expect(connectSupervisor(noise)).rejects.toThrow("stream is not valid");
    if (noise.exitCode === null && noise.signalCode === null) await once(noise, "exit");
  });

  it("is no longer awaited once the signal aborts", async () => {
    const directory = await temporaryDirectory();
    await mkdir(path.join(directory, "workspace"));
    const silent = spawn("sleep", ["300"]);
    onTestFinished(() => void silent.kill("SIGKILL"));
    const controller = new AbortController();
    const connecting = errorOf(connectSupervisor(silent, { signal: controller.signal }));
    controller.abort(new Error("given up"));
    expect(await connecting).toEqual(new Error("given up"));
  });
});
