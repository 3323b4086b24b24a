import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  attachCommand,
  connectSupervisor,
  pythonCommand,
  SessionLink,
  sessionServerLoader,
  type SupervisorStreams,
} from "@fenced/executor-kit/supervisor";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";

const program = readFileSync(new URL("../src/pod/keeper.py", import.meta.url), "utf8");

/** A pod's main process, on this machine. */
class Keeper {
  readonly name: string = `fenced-test-${randomUUID()}`;
  readonly process: ChildProcess;
  readonly ended: Promise<unknown>;

  /** @param patience - seconds that it waits for its supervisor. */
  constructor(patience: number) {
    const [command, ...words] = pythonCommand(program);
    this.process = spawn(command, [...words, this.name, String(patience)], { stdio: ["ignore", "ignore", "inherit"] });
    this.ended = once(this.process, "exit");
    onTestFinished(async () => {
      this.process.kill("SIGKILL");
      await this.ended;
    });
  }
}

function run([command, ...words]: readonly [string, ...string[]]): SupervisorStreams & {
  readonly child: ChildProcess;
} {
  const child = spawn(command, words);
  for (const stream of [child.stdin, child.stdout]) stream.on("error", () => {});
  onTestFinished(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  return { child, stdin: child.stdin, stdout: child.stdout, stderr: child.stderr };
}

async function loader(keeper: Keeper) {
  const directory = await mkdtemp(path.join(tmpdir(), "fenced-keeper-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const socket = `fenced-${randomUUID()}`;
  const session = path.join(directory, "session");
  return { socket, ...sessionServerLoader(keeper.name, socket, { directory: session, workspace: directory }) };
}

const access = { keepAliveMs: 60_000, takeOver: false, signal: new AbortController().signal };

describe("the main process of a pod", needs("python3", "bash"), () => {
  it("becomes the server of a session, which ends it", async () => {
    const keeper = new Keeper(30);
    const { socket, command, program: text } = await loader(keeper);
    const first = run(command);
    first.stdin.write(text);
    const connect = (): Promise<SupervisorStreams> => Promise.resolve(run(attachCommand(socket)));
    const key = randomBytes(32);
    const link = await SessionLink.open({ ...access, key, first, connect });
    const { supervisor } = await connectSupervisor(link.streams, { isCut: () => link.isCut });
    await supervisor?.ping();
    // Only a connection that it holds keeps the program that opened it.
    first.child.kill("SIGKILL");
    await supervisor?.ping();
    expect(await link.end()).toBe("told");
    await keeper.ended;
  });

  it("ends if the server's program does not arrive, or not completely", async () => {
    const [silent, broken] = [new Keeper(1), new Keeper(30)];
    const [never, half] = [await loader(silent), await loader(broken)];
    run(never.command);
    const { stdin } = run(half.command);
    stdin.write(half.program.subarray(0, 1000));
    stdin.end();
    expect(await Promise.all([silent.ended, broken.ended])).toEqual([
      [0, null],
      [0, null],
    ]);
  });

  it("listens to no other user", needs("root"), async () => {
    const keeper = new Keeper(30);
    const { socket, command, program: text } = await loader(keeper);
    const strange = `import socket, sys
connection = socket.socket(socket.AF_UNIX)
while connection.connect_ex("\\0" + sys.argv[1]): pass
print(len(connection.recv(1)))`;
    const stranger = spawn("python3", ["-c", strange, keeper.name], { uid: 65_532, gid: 65_532, cwd: "/" });
    let said = "";
    stranger.stdout.on("data", (bytes: Buffer) => (said += bytes.toString()));
    await once(stranger, "close");
    expect(said).toBe("0\n");
    const first = run(command);
    first.stdin.write(text);
    const connect = (): Promise<SupervisorStreams> => Promise.resolve(run(attachCommand(socket)));
    const link = await SessionLink.open({ ...access, key: randomBytes(32), first, connect });
    expect(await link.end()).toBe("told");
    await keeper.ended;
  });
});
