import { execFileSync } from "node:child_process";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs, nightly } from "@fenced/test-support";
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { headersFor, rawRequest } from "./support/raw-request.ts";
import { startServer, type TestServer } from "./support/start-server.ts";

/**
 * Replaces the program that serves files, as code with rights over its sandbox can: `.forge` in the home directory
 * says what it does with requests.
 */
const forger = (python: string): string => `#!${python}
import json, os, struct, sys
if len(sys.argv) < 3 or "The files of a sandbox" not in sys.argv[2] or not os.path.exists(".forge"):
    os.execv(sys.executable, [sys.executable] + sys.argv[1:])
def say(head, data=b""):
    text = json.dumps(head).encode() if not isinstance(head, bytes) else head
    sys.stdout.buffer.write(struct.pack(">II", len(text), len(data)) + text + data)
    sys.stdout.buffer.flush()
while True:
    lengths = sys.stdin.buffer.read(8)
    if len(lengths) < 8: break
    text, data = struct.unpack(">II", lengths)
    request = json.loads(sys.stdin.buffer.read(text))
    sys.stdin.buffer.read(data)
    exec(open(".forge").read())
`;

describe("hostile code", needs("python3", "bash"), () => {
  let server: TestServer;
  let sandbox: Sandbox;
  let programs = "";
  beforeAll(async () => {
    programs = await mkdtemp(join(tmpdir(), "e2b-forger-"));
    const python = execFileSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" }).trim();
    await writeFile(join(programs, "python3"), forger(python));
    await chmod(join(programs, "python3"), 0o755);
    const env = { PATH: `${programs}:${process.env["PATH"] ?? ""}` };
    server = await startServer({ templates: { base: () => new LocalCommandLineCodeExecutor({ env, warm: {} }) } });
    sandbox = await Sandbox.create("base", server.client);
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await rm(programs, { recursive: true });
  });

  /** Makes the program that serves files do this with each request from now on. */
  const forge = async (python: string): Promise<Sandbox> => {
    const forged = await Sandbox.create("base", server.client);
    await forged.commands.run(`cat > .forge <<'END'\n${python}\nEND`);
    return forged;
  };

  it.each([
    ["lengths that are huge", `sys.stdout.buffer.write(b"\\xff" * 8); sys.stdout.buffer.flush()`],
    ["what is no JSON", `say(b"{")`],
    ["JSON that is deep", `say(b'{"id": 1, "ok": ' + b'[' * 10**6 + b']' * 10**6 + b'}')`],
    ["answers to nothing, without end", `[say({"id": 10**9, "ok": {}}) for _ in range(10**6)]`],
    ["something else", `say({"id": request["id"], "ok": {"entry": 3}, "event": [1]})`],
  ])("that answers with %s gets an error for its own client", async (_what, python) => {
    const forged = await forge(python);
    await expect(forged.files.makeDir("x")).rejects.toThrow(/not an answer/);
    // It is started again each time.
    await forged.commands.run("rm .forge");
    await expect.poll(() => forged.files.makeDir("x").catch(() => false)).toBe(true);
  });

  it("cannot send more of a file than its response announces", async () => {
    const forged = await forge(`
op = request["op"]
if op == "open": say({"id": request["id"], "ok": {"handle": 1, "size": 100, "modified": 0}})
elif op == "read": say({"id": request["id"], "ok": {}}, b"HTTP/1.1 200 OK " * 1000)
else: say({"id": request["id"], "ok": {}})`);
    const headers = { ...headersFor(forged), range: "bytes=0-9" };
    const answer = await fetch(`${server.url}/files?path=x`, { headers });
    await expect(answer.text()).rejects.toThrow(/terminated/);
  });

  it("cannot fill a file's announced length with the next answer on the connection by making it shorter", async () => {
    const forged = await forge(`
op = request["op"]
if op == "open": say({"id": request["id"], "ok": {"handle": 1, "size": 100, "modified": 0}})
elif op == "read":
    left, rest = globals().get("rest", b"begins"), b""
    say({"id": request["id"], "ok": {}}, left)
else: say({"id": request["id"], "ok": {}})`);
    const headers = { ...headersFor(forged), range: "bytes=0-99" };
    const socket = rawRequest(server.url, "GET /files?path=x", headers);
    // On the same connection, as a proxy's requests for other users are.
    socket.write("GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    const received = await textOf(socket).catch(() => "an error");
    expect(received).toMatch(/^HTTP\/1\.1 206 [^]*\r\n\r\nbegins$/);
  });

  it("cannot fill the server's memory with events that nobody reads", async () => {
    const forged = await forge(`
if request["op"] != "watch": say({"id": request["id"], "ok": {}})
else:
    say({"id": request["id"], "event": {"started": True}})
    for _ in range(200): say({"id": request["id"], "event": {"name": "x" * 4 * 10**6}})`);
    const post = async (method: string, body: object) => {
      const headers = { ...headersFor(forged), "content-type": "application/json" };
      const init = { method: "POST", headers, body: JSON.stringify(body) };
      return (await fetch(`${server.url}/filesystem.Filesystem/${method}`, init)).json();
    };
    const before = process.memoryUsage().rss;
    const { watcherId } = z.object({ watcherId: z.string() }).parse(await post("CreateWatcher", { path: "x" }));
    await expect
      // Seldom enough that more events come in between than are kept, on slow machines, too.
      .poll(() => post("GetWatcherEvents", { watcherId }), { timeout: 100_000, interval: 10_000 })
      .toMatchObject({ code: "resource_exhausted", message: expect.stringMatching(/not read fast enough/) });
    expect(process.memoryUsage().rss - before).toBeLessThan(300_000_000);
  }, 120_000);

  it("that makes the loader complain, or is first on the PATH, starts programs as ever", async () => {
    const { stdout, stderr } = await sandbox.commands.run("echo here", { envs: { LD_PRELOAD: "/missing.so" } });
    expect([stdout, stderr.includes("/missing.so")]).toEqual(["here\n", true]);
    await sandbox.commands.run("printf '#!/bin/sh\nexec tr -d \"\\n\" </dev/zero >&2' > python3; chmod +x python3");
    const { stdout: home } = await sandbox.commands.run("pwd -P");
    let text = "";
    const terminal = await sandbox.pty.create({
      cols: 80,
      rows: 24,
      envs: { PATH: `${home.trim()}:/usr/bin:/bin` },
      onData: (bytes) => void (text += Buffer.from(bytes).toString()),
    });
    await sandbox.pty.sendInput(terminal.pid, Buffer.from("echo $((40 + 2)); exit\n"));
    expect((await terminal.wait()).exitCode).toBe(0);
    expect(text).toMatch(/^42\r$/m);
  });

  it("can have names, times and trees that no list can show", async () => {
    await sandbox.commands.run(`python3 - <<'END'
import os
os.makedirs("odd")
open(b"odd/\\xff", "w").close()
open("odd/old", "w").close()
os.utime("odd/old", (0, 2**62 // 10**9))
for name in (b"\\xfe" * 200, b"m"):
    os.makedirs(b"many/" + name)
deep = b"many/" + b"\\xfe" * 200 + b"/" + b"\\xfd" * 250
os.makedirs(deep)
for each in range(15000): open(deep + b"/" + b"\\xfe" * 240 + b"%d" % each, "w").close()
END`);
    const names = (await sandbox.files.list("odd")).map(({ name }) => name);
    expect(names.toSorted()).toEqual(["old", "\u{fffd}"]);
    await expect(sandbox.files.list("many", { depth: 9 })).rejects.toThrow(/longer than 16 MiB/);
    // What others do at the same time goes on.
    expect(await sandbox.files.exists("odd/old")).toBe(true);
  }, 120_000);

  it(
    "that stops the program which serves files makes its client wait, and no longer",
    { timeout: 120_000, ...nightly },
    async () => {
      const stopped = await Sandbox.create("base", { ...server.client, requestTimeoutMs: 90_000 });
      await stopped.files.write("kept.txt", "kept");
      const cwd = (await stopped.commands.run("pwd -P")).stdout.trim();
      const guests = `for p in $(pgrep -f '[T]he files of a sandbox'); do [ "$(readlink /proc/$p/cwd)" = ${cwd} ] &&`;
      await stopped.commands.run(`${guests} kill -STOP $p; done; true`);
      await expect(stopped.files.read("kept.txt")).rejects.toThrow(/did not answer in time/);
      expect(await stopped.files.read("kept.txt")).toBe("kept");
      expect((await stopped.commands.run(`${guests} echo 1; done; true`)).stdout).toBe("1\n");
    },
  );
});
