import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { connectSupervisor, type Supervisor, supervisorCommand } from "@fenced/executor-kit/supervisor";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { TextSink } from "../support/text-sink.ts";

async function opened(): Promise<{ supervisor: Supervisor; directory: string }> {
  const directory = path.join(await temporaryDirectory(), "session");
  const [program, ...words] = supervisorCommand({ directory, workspace: await temporaryDirectory() });
  const child = spawn(program, words, { stdio: ["pipe", "pipe", "pipe"] });
  onTestFinished(async () => {
    child.stdin.destroy();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  const { supervisor } = await connectSupervisor(child);
  if (!supervisor) throw new Error("There is no Python.");
  return { supervisor, directory };
}

/** Both ends of a connection: the program's and the host's. */
async function connected(): Promise<{ program: net.Socket; host: Duplex }> {
  const { supervisor } = await opened();
  const accepted = new Promise<Duplex>((resolve, reject) => {
    supervisor.openCalls(resolve).then((address) => {
      const program = net.connect(address.replace(/^unix:/, ""));
      program.on("error", () => {});
      programs.push(program);
    }, reject);
  });
  const programs: net.Socket[] = [];
  const host = await accepted;
  const [program] = programs;
  if (!program) throw new Error("not connected");
  onTestFinished(() => {
    program.destroy();
    host.destroy();
  });
  return { program, host };
}

const large = Buffer.alloc(9_000_000, "0123456789abcdef");

describe.skipIf(process.platform !== "linux")("connections through a supervisor", needs("python3"), () => {
  it("carry megabytes in both directions at once, complete and in order", async () => {
    const { program, host } = await connected();
    const [atHost, atProgram] = [take(host, large.length), take(program, large.length)];
    program.write(large);
    host.write(large);
    expect((await atHost).equals(large)).toBe(true);
    expect((await atProgram).equals(large)).toBe(true);
  });

  it("end at the other side after all data has arrived", async () => {
    const { program, host } = await connected();
    const said = buffer(program);
    host.end(large);
    expect((await said).equals(large)).toBe(true);
    const other = await connected();
    const heard = buffer(other.host);
    other.program.end("last words");
    expect((await heard).toString()).toBe("last words");
  });

  it("make a program wait while nobody reads, and close at once when they are destroyed", async () => {
    const { program, host } = await connected();
    host.pause();
    program.write(large);
    // The windows of both sides fill up; the rest stays with the program.
    await once(host, "readable");
    expect(host.readableLength).toBeLessThanOrEqual(1_048_576);
    expect(program.writableLength).toBeGreaterThan(0);
    const closed = closeOf(program);
    host.destroy();
    await closed;
  });

  it("are destroyed with the supervisor, and do not disturb its blocks", async () => {
    const { supervisor, directory } = await opened();
    const connections: Duplex[] = [];
    const address = await supervisor.openCalls((connection) => connections.push(connection));
    expect(address).toBe(`unix:${directory}/calls`);
    expect(await supervisor.openCalls((connection) => connections.push(connection))).toBe(address);
    const program = net.connect(address.slice("unix:".length));
    await once(program, "connect");
    const output = new TextSink();
    expect(await supervisor.run({ argv: ["sh", "-c", "echo hello"], env: {} }, output)).toMatchObject({ exitCode: 0 });
    expect(output.stdout).toBe("hello\n");
    await expect.poll(() => connections.length).toBe(1);
    const closed = closeOf(program);
    supervisor.fail(new Error("lost"));
    expect(connections[0]?.destroyed).toBe(true);
    program.destroy();
    await closed;
  });

  it("report why the socket could not be created", async () => {
    const { supervisor, directory } = await opened();
    await writeFile(path.join(directory, "calls"), "taken");
    await expect(supervisor.openCalls(() => {})).rejects.toThrow(/socket for host functions could not be created/);
  });
});

function take(stream: Duplex, count: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  return new Promise((resolve) => {
    stream.on("data", (piece: Buffer) => {
      pieces.push(piece);
      size += piece.length;
      if (size >= count) resolve(Buffer.concat(pieces));
    });
  });
}

/** Resolves when the socket has closed, also after an error. */
function closeOf(socket: net.Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once("close", () => resolve());
  });
}
