import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, stat } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import { type Duplex, PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { networkVariables } from "@fenced/executor-kit";
import { connectSupervisor, type Supervisor, supervisorCommand } from "@fenced/executor-kit/supervisor";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { encodeFrame, frameType } from "../../src/supervisor/wire/wire.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { TextSink } from "../support/text-sink.ts";

/** A supervisor of this host, and both ends of a connection through it. */
async function connected(): Promise<{ supervisor: Supervisor; directory: string; program: net.Socket; host: Duplex }> {
  const directory = path.join(await temporaryDirectory(), "session");
  const [command, ...words] = supervisorCommand({ directory, workspace: await temporaryDirectory() });
  const child = spawn(command, words, { stdio: ["pipe", "pipe", "pipe"] });
  onTestFinished(async () => {
    child.stdin.destroy();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  const { supervisor } = await connectSupervisor(child);
  if (!supervisor) throw new Error("There is no Python.");
  const connections: Duplex[] = [];
  const { port } = await supervisor.openNetwork((connection) => connections.push(connection));
  const program = net.connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  onTestFinished(() => void program.destroy());
  await expect.poll(() => connections.length).toBe(1);
  const [host] = connections;
  if (!host) throw new Error("not connected");
  return { supervisor, directory, program, host };
}

describe.skipIf(process.platform !== "linux")("proxy connections through a supervisor", needs("python3"), () => {
  it("can be closed in one direction at a time", async () => {
    const { program, host } = await connected();
    const asked: Buffer[] = [];
    host.on("data", (bytes: Buffer) => asked.push(bytes));
    program.end("question");
    await once(host, "end");
    expect(Buffer.concat(asked).toString()).toBe("question");
    host.end("answer");
    expect(await text(program)).toBe("answer");
    await expect.poll(() => host.destroyed).toBe(true);
  });

  it("are reset at the program when the host destroys them, and vice versa", async () => {
    const { program, host, supervisor } = await connected();
    const error = once(program.resume(), "error");
    host.destroy();
    expect(await error).toMatchObject([{ code: "ECONNRESET" }]);
    const connections: Duplex[] = [];
    const { port } = await supervisor.openNetwork((connection) => connections.push(connection));
    const gone = net.connect(port, "127.0.0.1");
    await expect.poll(() => connections.length).toBe(1);
    gone.resetAndDestroy();
    await expect.poll(() => connections[0]?.destroyed).toBe(true);
  });

  it("come with a file of trusted certificates, if there are some to add", async () => {
    const { supervisor, directory } = await connected();
    const entrance = await supervisor.openNetwork(() => {}, "-----BEGIN CERTIFICATE-----\nours\n");
    const file = path.join(directory, "authorities.pem");
    expect(entrance).toEqual({ port: expect.any(Number), authorities: file });
    expect(await readFile(file, "utf8")).toMatch(/^-----BEGIN CERTIFICATE-----\nours\n/);
    const system = await stat("/etc/ssl/certs/ca-certificates.crt").catch(() => undefined);
    expect((await stat(file)).size).toBeGreaterThan(system?.size ?? 0);
    expect(networkVariables(entrance)).toMatchObject({ SSL_CERT_FILE: file, https_proxy: expect.any(String) });
    expect(await supervisor.openNetwork(() => {})).toEqual({ port: entrance.port });
  });

  it("report why the port could not be created", async () => {
    const { supervisor, directory } = await connected();
    await supervisor.run({ argv: ["rm", "-r", directory], env: {} }, new TextSink());
    await expect(supervisor.openNetwork(() => {}, "certificates")).rejects.toThrow(
      /port for the proxy could not be created: .*No such file/,
    );
  });
});

/** A fake supervisor, at the other end of two streams. */
async function forged(): Promise<{
  supervisor: Supervisor;
  stdin: PassThrough;
  connections: Duplex[];
  say: (...frames: readonly Buffer[]) => void;
  lost: Promise<Error>;
}> {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  let onLost = (_: Error): void => {};
  const lost = new Promise<Error>((resolve) => {
    onLost = resolve;
  });
  const answer = connectSupervisor({ stdin, stdout }, { onLost });
  stdout.write("FENCED1\n");
  const say = (...frames: readonly Buffer[]): void => void stdout.write(Buffer.concat(frames));
  say(encodeFrame(frameType.hello, 0, Buffer.from("self 1\nuid 0\ngid 0")));
  const { supervisor } = await answer;
  if (!supervisor) throw new Error("not taken for a supervisor");
  const connections: Duplex[] = [];
  const opened = supervisor.openNetwork((connection) => connections.push(connection));
  say(encodeFrame(frameType.listening, 1, Buffer.from("port 1234 ")));
  expect(await opened).toEqual({ port: 1234 });
  return { supervisor, stdin, connections, say, lost };
}

const open = (number: number, kind = 1): Buffer => encodeFrame(frameType.tunnelOpen, number, Buffer.from([kind]));

describe("a forged supervisor", () => {
  it.each([
    ["opens a connection twice", [open(1), open(1)]],
    ["opens a connection of no kind", [encodeFrame(frameType.tunnelOpen, 1)]],
    ["acknowledges half a number", [open(1), encodeFrame(frameType.tunnelTaken, 1, Buffer.from([1]))]],
    ["sends an unknown frame", [encodeFrame(99, 1)]],
  ])("that %s is lost", async (_, frames) => {
    const { say, lost } = await forged();
    say(...frames);
    expect(await lost).toBeInstanceOf(Error);
  });

  it("that opens a connection that nobody expects must drop it", async () => {
    const { say, stdin } = await forged();
    let sent = Buffer.alloc(0);
    stdin.on("data", (bytes: Buffer) => (sent = Buffer.concat([sent, bytes])));
    say(open(1, 0));
    await expect.poll(() => sent.includes(encodeFrame(frameType.tunnelDrop, 1))).toBe(true);
  });

  it("gets no more connections than an honest one", async () => {
    const { say, stdin, connections } = await forged();
    stdin.resume();
    say(...Array.from({ length: 2000 }, (_, index) => open(index + 1)));
    await expect.poll(() => connections.length).toBe(512);
    const last = connections.at(-1);
    last?.destroy();
    say(open(3000));
    await expect.poll(() => connections.length).toBe(513);
  });

  it("that sends too much on a connection loses only that connection", async () => {
    const { say, connections } = await forged();
    const piece = Buffer.alloc(400_000);
    say(open(1), open(2));
    say(...Array.from({ length: 5 }, () => encodeFrame(frameType.tunnelData, 1, piece)));
    say(encodeFrame(frameType.tunnelData, 2, Buffer.from("still here")));
    await expect.poll(() => connections.map(({ destroyed }) => destroyed)).toEqual([true, false]);
    await expect.poll(() => String(connections[1]?.read())).toBe("still here");
  });

  it("that does not read makes all writers wait until it reads again", async () => {
    const { say, stdin, connections } = await forged();
    say(...Array.from({ length: 300 }, (_, index) => open(index + 1)));
    await expect.poll(() => connections.length).toBe(300);
    let taken = 0;
    for (const connection of connections) connection.write(Buffer.alloc(200_000), () => (taken += 1));
    expect(stdin.writableLength + stdin.readableLength).toBeLessThan(400_000);
    expect(taken).toBe(0);
    stdin.resume();
    // Less than a window, so all of it may be in transit.
    await expect.poll(() => taken).toBe(300);
  });

  it("that provokes answers and reads none is lost", async () => {
    const { say, lost } = await forged();
    say(...Array.from({ length: 512 }, (_, index) => open(index + 1)));
    const flood = Buffer.concat(Array.from({ length: 50_000 }, () => open(1_000_000)));
    for (let count = 0; count < 3; count += 1) say(flood);
    expect((await lost).message).toMatch(/has stopped reading/);
  });
});
