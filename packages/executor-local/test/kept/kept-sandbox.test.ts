import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import readline from "node:readline";
import {
  type CodeExecutor,
  type ConnectExecutorOptions,
  recordFile,
  type SessionHandle,
  verifyRecord,
} from "@fenced/core";
import { hasVariable, listProcesses } from "@fenced/executor-kit";
import { LocalCommandLineCodeExecutor, type LocalExecutorOptions } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { playHost } from "@fenced/test-support/loopback-hosts";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { hostCommand } from "../support/host-command.ts";
import { connectKept, createKept, remainsOf } from "../support/kept-subject.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const keepAliveMs = 120_000;

const hostile = `
import os, signal, socket, struct, time
# The first process gets every signal, and so does every number that this program cannot see: among them, outside, the server's.
own = {int(each) for each in os.listdir("/proc") if each.isdigit()} - {1}
for number in range(1, 65):
    for pid in {1, *range(1, 40000, 97)} - own:
        try: os.kill(pid, number)
        except OSError: pass
for _ in range(2000): os.kill(1, signal.SIGSTOP)
# The server's socket is one of the machine's, which this network reaches.
names = {line.split("@", 1)[1].strip() for line in open("/proc/net/unix") if "@fenced-" in line}
held = []
for name in names:
    for _ in range(60):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(1)
        try:
            connection.connect("\\0" + name)
            ours, theirs = socket.socketpair()
            connection.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("=2i", theirs.fileno(), theirs.fileno()))])
            ours.send(b"FENCED-START\\n" + bytes(40) + b"FENCED-LINK1\\n" + os.urandom(200))
            held += [connection, ours]
        except OSError: pass
print("sockets", len(names) > 0)
made = 0
try:
    while True:
        if os.fork() == 0:
            os.setsid()
            for each in range(1, 32):
                try: signal.signal(each, signal.SIG_IGN)
                except (OSError, ValueError): pass
            while True: time.sleep(1000)
        made += 1
except OSError as error:
    print("forks", 10 < made < 100, error.strerror)
`;

const limits = "taken = bytearray(400 * 2**20)\nprint('took it all')";
const fills = "with open('large', 'wb') as file:\n    for _ in range(100): file.write(bytes(2**20))";

/** Another program that uses a session, as a user. */
class UserProgram {
  readonly #child: ChildProcess;
  readonly #reports: AsyncIterator<string>;

  private constructor(child: ChildProcess, reports: AsyncIterator<string>) {
    this.#child = child;
    this.#reports = reports;
  }

  static async start(request: {
    readonly user: number;
    readonly handle?: SessionHandle;
    readonly keepAliveMs: number;
    readonly blocks: readonly string[];
    readonly end: "wait" | "stop" | "detach";
  }): Promise<UserProgram> {
    const [program, ...words] = await hostCommand("uses-session.ts");
    const env = { PATH: "/usr/local/bin:/usr/bin:/bin" };
    const child = spawn(program, [...words, JSON.stringify(request)], { env, stdio: ["ignore", "pipe", "inherit"] });
    onTestFinished(() => {
      child.kill("SIGKILL");
    });
    return new UserProgram(child, readline.createInterface({ input: child.stdout })[Symbol.asyncIterator]());
  }

  async next(): Promise<unknown> {
    const { value, done } = await this.#reports.next();
    return done === true ? undefined : JSON.parse(value);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.ended();
  }

  async ended(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "exit");
  }
}

/** Started in a sandbox without `warm` and `stateful`, which it does not need. */
function createSandboxed(options: LocalExecutorOptions = {}): LocalCommandLineCodeExecutor {
  const executor = createKept({ isolation: "os-sandbox", keepAliveMs, ...options });
  onTestFinished(() => executor.stop());
  return executor;
}

async function connect(handle: SessionHandle | undefined, options: ConnectExecutorOptions = {}): Promise<CodeExecutor> {
  const executor = await connectKept(handle, options);
  onTestFinished(() => executor.stop());
  return executor;
}

/** The server of a sandbox, which is outside of it; it has the command that it started among its arguments. */
async function serverOf({ session }: SessionHandle): Promise<number> {
  const socket = z.string().parse(session["socket"]);
  for (const { pid } of await listProcesses()) {
    const words = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    if (words.includes(`\0${socket}\0`) && words.includes("\0--die-with-parent\0")) return pid;
  }
  throw new Error("no server");
}

/** Leaves a program that asks for a page, over the proxy's port, until it gets it; it begins when there is a file `go`. */
const asksLater = (url: string): string => `
import subprocess, sys
code = """
import os, time, urllib.request
os.environ["no_proxy"] = ""
while not os.path.exists("go"): time.sleep(0.01)
open("asking", "w").close()
while True:
    try:
        said = urllib.request.urlopen("${url}").read()
        break
    except OSError:
        time.sleep(0.01)
open("answer.part", "wb").write(said)
os.rename("answer.part", "answer")
"""
subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
`;

describe("a sandbox with keepAliveMs", needs("python3", "bash", "node", "bubblewrap"), () => {
  it("connects what programs in it ask for to the program that is connected", async () => {
    const url = `http://127.0.0.1:${await playHost()}/page`;
    const workDir = await temporaryDirectory();
    const first = createSandboxed({ workDir, network: { allow: ["127.0.0.1"] } });
    const { exitCode } = await first.executeCodeBlocks([{ language: "python", code: asksLater(url) }]);
    expect(exitCode).toBe(0);
    const { handle } = first;
    await first.detach();
    await writeFile(path.join(workDir, "go"), "");
    await expect.poll(() => readdir(workDir)).toContain("asking");
    const second = await connect(handle);
    await expect.poll(() => readdir(workDir), { timeout: 60_000 }).toContain("answer");
    expect(await readFile(path.join(workDir, "answer"), "utf8")).toContain("GET /page");
    const refused = "import urllib.request\nurllib.request.urlopen('https://evil.example')";
    const result = await second.executeCodeBlocks([{ language: "python", code: refused }]);
    expect(result.network).toEqual([expect.objectContaining({ allowed: false, host: "evil.example" })]);
  });

  it("has a proxy of its policy without a password in its handle, nothing allowed without the password, and takes a record", async () => {
    const upstreamProxy = { url: "http://proxy.example:3128", noProxy: ["127.0.0.1"] };
    const withPassword = { ...upstreamProxy, username: "builder", password: () => "s3cr3t" };
    const allow = ["api.example"];
    const executor = createSandboxed({ network: { allow, upstreamProxy: withPassword } });
    await executor.start();
    expect(executor.handle?.component.config["network"]).toEqual({ allow: [] });
    await executor.stop();
    const file = path.join(await temporaryDirectory(), "runs.jsonl");
    const first = createSandboxed({ network: { allow, upstreamProxy }, record: recordFile(file) });
    await first.start();
    const { handle } = first;
    expect(handle?.component.config).toMatchObject({ network: { allow, upstreamProxy } });
    await first.detach();
    const second = await connect(handle, { record: recordFile(file) });
    await second.executeCodeBlocks([{ language: "python", code: "open('made', 'w').close()" }]);
    expect(await verifyRecord(file)).toMatchObject({ valid: true, count: 1 });
  });

  it("can be forked, and has the same programs, after another program has connected", async () => {
    const first = createSandboxed({ stateful: true });
    const begin = "import os\nkept = 1\nprint(os.environ['PATH'])";
    const before = await first.executeCodeBlocks([{ language: "python", code: begin }]);
    const { handle } = first;
    await first.detach();
    vi.stubEnv("PATH", `/nowhere:${process.env["PATH"]}`);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const second = await connect(handle);
    if (!(second instanceof LocalCommandLineCodeExecutor)) throw new Error("another executor");
    const after = await second.executeCodeBlocks([{ language: "python", code: "print(os.environ['PATH'])" }]);
    expect(after.output).toBe(before.output);
    await using fork = await second.fork();
    const change = [{ language: "python", code: "kept += 1\nprint(kept)" }];
    expect((await fork.executeCodeBlocks(change)).output).toBe("2\n");
    expect((await second.executeCodeBlocks(change)).output).toBe("2\n");
  });

  it("ends with its server, and the next call has another one", async () => {
    const reasons: string[] = [];
    const executor = createSandboxed({ onSessionLost: (reason) => reasons.push(reason) });
    const leave = "(FENCED_TEST_IN_SANDBOX=1 setsid sleep 1000 &) >/dev/null 2>&1; echo started";
    expect((await executor.executeCodeBlocks([{ language: "bash", code: leave }])).output).toBe("started\n");
    const { handle } = executor;
    if (!handle) throw new Error("no handle");
    process.kill(await serverOf(handle), "SIGKILL");
    await expect.poll(() => reasons, { timeout: 60_000 }).toEqual([expect.stringMatching(/^The session is lost: /)]);
    expect((await executor.executeCodeBlocks([{ language: "bash", code: "echo again" }])).output).toBe("again\n");
    expect(executor.handle).not.toEqual(handle);
    // Its processes have the executor's mark, as the new ones do.
    await expect.poll(async () => (await remainsOf(handle)).filter((each) => !each.startsWith("process"))).toEqual([]);
    const left = async () =>
      (await listProcesses()).filter(({ pid }) => hasVariable(pid, "FENCED_TEST_IN_SANDBOX", "1"));
    await expect.poll(left).toEqual([]);
  });

  it("says why it does not start, and leaves nothing", async () => {
    const directory = await temporaryDirectory();
    await symlink("/usr/bin/false", path.join(directory, "bwrap"));
    vi.stubEnv("PATH", `${directory}:${process.env["PATH"]}`);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    const executor = createSandboxed();
    await expect(executor.start()).rejects.toThrow(
      /^The sandbox could not be started: bubblewrap or the program in it/,
    );
    expect((await readdir(directory)).length).toBe(1);
  });
});

const started = z.object({ handle: z.custom<SessionHandle>((value) => value !== undefined) });

describe.each([
  ["root", 0],
  ["an ordinary user", 65_534],
])("a sandbox of %s with keepAliveMs", needs("python3", "bubblewrap", "root"), (_, user) => {
  it("survives kill -9 of its program and hostile code, keeps its limits, and leaves nothing", async () => {
    const first = await UserProgram.start({ user, keepAliveMs, blocks: ["kept = 41", hostile], end: "wait" });
    const { handle } = started.parse(await first.next());
    const left = (): Promise<string[]> => remainsOf(handle);
    expect(await left()).not.toEqual([]);
    expect(await first.next()).toMatchObject({ stateLost: false });
    expect(await first.next()).toEqual({
      output: "sockets True\nforks True Resource temporarily unavailable\n",
      stateLost: false,
    });
    await first.kill();
    const blocks = ["print(kept + 1)", "restart", limits, fills];
    const second = await UserProgram.start({ user, handle, keepAliveMs, blocks, end: "stop" });
    expect(await second.next()).toEqual({ handle });
    expect(await second.next()).toEqual({ output: "42\n", stateLost: false });
    expect(await second.next()).toMatchObject({ output: expect.not.stringContaining("took it all") });
    expect(await second.next()).toMatchObject({ output: expect.stringContaining("exceed the limit of 19 MiB") });
    expect(await second.next()).toEqual({ files: expect.arrayContaining(["large"]) });
    await second.ended();
    expect(await left()).toEqual([]);
  });

  it("ends by itself when nobody comes back after kill -9 of its program", async () => {
    const leave = "import subprocess\nsubprocess.Popen(['sleep', '1000'], start_new_session=True)";
    const first = await UserProgram.start({ user, keepAliveMs: 500, blocks: [leave], end: "wait" });
    const { handle } = started.parse(await first.next());
    expect(await first.next()).toMatchObject({ output: expect.stringContaining("Popen") });
    await first.kill();
    await expect.poll(() => remainsOf(handle), { timeout: 60_000 }).toEqual([]);
  });
});
