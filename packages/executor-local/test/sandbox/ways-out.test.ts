import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import net from "node:net";
import path from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { printed, sandboxed } from "../support/local-executor.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

/** Serves sockets and reads a pipe in its working directory, in ways that the kernel's table of sockets does not tell. */
const hostProgram = `
import os, socket
def bind(name):
    here = socket.socket(socket.AF_UNIX)
    here.bind(name)
    here.listen()
    return here
kept = [bind("relative"), bind(os.path.abspath("first"))]
os.rename("first", "renamed")
os.chdir("deep/deeper")
kept.append(bind("beyond"))
os.chdir("../..")
os.mkfifo("pipe")
pipe = os.open("pipe", os.O_RDWR)
print("ready", flush=True)
while True: print(os.read(pipe, 7).decode(), flush=True)
`;

describe("a sandbox", needs("python3", "bubblewrap"), () => {
  it("hides the host's sockets in what it shows, unless a socket is shared itself, for writing", async () => {
    const directory = await temporaryDirectory();
    const socket = path.join(directory, "shown/socket");
    await mkdir(path.dirname(socket));
    const server = net.createServer((connection) => connection.end("hello"));
    await once(server.listen(socket), "listening");
    onTestFinished(async () => {
      await once(server.close(), "close");
    });
    const code = `import socket\nwith socket.socket(socket.AF_UNIX) as each:\n    each.connect(${JSON.stringify(socket)})\n    print(each.recv(9))`;
    for (const options of [{ readable: [directory] }, { writable: [directory] }]) {
      await using executor = sandboxed(options);
      expect(await printed(executor, "python", code)).toContain("ConnectionRefusedError");
    }
    await using reading = sandboxed({ readable: [socket] });
    await expect(reading.start()).rejects.toThrow(/it is a socket.*name the socket in `writable`/);
    await using writing = sandboxed({ readable: [directory], writable: [socket] });
    expect(await printed(writing, "python", code)).toBe("b'hello'\n");
  });

  it("hides sockets that were bound by a relative name or renamed, and named pipes, in what code can only read", async () => {
    const directory = await temporaryDirectory();
    await mkdir(path.join(directory, "deep/deeper"), { recursive: true });
    const serving = spawn("/usr/bin/python3", ["-c", hostProgram], {
      cwd: directory,
      stdio: ["pipe", "pipe", "inherit"],
    });
    onTestFinished(async () => {
      const ended = once(serving, "exit");
      serving.kill();
      await ended;
    });
    const lines = createInterface(serving.stdout)[Symbol.asyncIterator]();
    await lines.next();
    const names = ["relative", "renamed", "deep/deeper/beyond", "pipe"].map((name) => path.join(directory, name));
    const code = `import os, socket
for name in ${JSON.stringify(names)}:
    try:
        if name.endswith("pipe"): os.write(os.open(name, os.O_WRONLY | os.O_NONBLOCK), b"command")
        else: socket.socket(socket.AF_UNIX).connect(name); print("connected", name)
    except OSError as error: print(type(error).__name__)`;
    await using reading = sandboxed({ readable: [directory] });
    expect(await printed(reading, "python", code)).toBe(`${"ConnectionRefusedError\n".repeat(3)}PermissionError\n`);
    const host = await promisify(execFile)("/usr/bin/python3", ["-c", code]);
    expect(host.stdout.match(/connected/g)).toHaveLength(3);
    // What was sent from the sandbox would come before this.
    expect((await lines.next()).value).toBe("command");
    await using writing = sandboxed({ writable: [directory] });
    expect(await printed(writing, "python", code)).toMatch(/^ConnectionRefusedError\nconnected /);
    for (const [index, kind] of [
      [0, "socket"],
      [3, "pipe"],
    ] as const) {
      await using one = sandboxed({ readable: [names[index] ?? ""] });
      await expect(one.start()).rejects.toThrow(`it is a ${kind}, through which code can do more than read`);
    }
  });

  it("lets code remove what an earlier session left in the work directory", async () => {
    const workDir = await temporaryDirectory();
    const leave = `import os, socket\nsocket.socket(socket.AF_UNIX).bind("socket")\nos.mkfifo("pipe")`;
    const remove = `import os\nfor name in ("socket", "pipe"): os.remove(name)\nprint(os.listdir())`;
    for (const code of [leave, remove]) {
      await using executor = sandboxed({ workDir });
      expect(await executor.executeCodeBlocks([{ language: "python", code }])).toMatchObject({ exitCode: 0 });
    }
  });
});
