import { readFileSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import path from "node:path";
import type { CodeExecutor, CodeResult, ExecuteOptions } from "@fenced/core";
import { slow } from "@fenced/test-support";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WasmCodeExecutor } from "../src/index.ts";
import { interpreterProcesses, killInterpreter } from "./kill-interpreter.ts";

const mebibyte = 1_048_576;
const attack = (name: string): string =>
  readFileSync(path.join(import.meta.dirname, "fixtures/attacks", `${name}.py`), "utf8");

describe("hostile code", { timeout: 240_000 }, () => {
  let executor: CodeExecutor;

  beforeAll(() => {
    executor = new WasmCodeExecutor({ memoryBytes: 128 * mebibyte, timeoutMs: 200_000 });
  });
  afterAll(() => executor.stop());

  const run = (code: string, options?: ExecuteOptions): Promise<CodeResult> =>
    executor.executeCodeBlocks([{ language: "python", code }], options);
  const goesOn = async (): Promise<void> => expect((await run("print('next')")).output).toBe("next\n");

  it.each([
    "import js",
    "import pyodide_js",
    "import pyodide_js._api",
    "from js import process",
    "from pyodide.code import run_js",
  ])("cannot %s", async (statement) => {
    const { exitCode, stderr } = await run(statement);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/ImportError|ModuleNotFoundError/);
  });

  it("finds nothing of JavaScript in what the import hooks have kept", async () => {
    const code = `
import sys, _pyodide._importhook as hooks
print(hooks.jsfinder.jsproxies, [name for name in sys.modules if name.startswith(("js.", "pyodide_js")) and sys.modules[name] is not None])
try: hooks.jsfinder.find_spec("pyodide_js", None).loader.create_module(None)
except Exception as error: print(type(error).__name__)
`;
    expect((await run(code)).stdout).toBe("{} []\nAttributeError\n");
  });

  it("cannot make code from text through constructor.constructor", async () => {
    const { stdout, exitCode } = await run(attack("eval"));
    expect([exitCode, stdout.match(/EvalError/g)?.length]).toEqual([0, 4]);
    expect(stdout).not.toContain("made");
  });

  it("finds nothing useful in any JavaScript object that Python can reach", async () => {
    expect((await run(attack("reach"))).output).toBe("seen True found []\n");
  });

  it("cannot mount a directory of the host", async () => {
    const { stdout } = await run(attack("mount"));
    expect(stdout).toContain("refused FileNotFoundError");
    expect(stdout).not.toContain("read ");
  });

  it("cannot run a script through ctypes: that ends the interpreter, and the next call gets another", async () => {
    const result = await run(attack("ctypes-script"));
    expect([result.exitCode, result.stateLost]).toEqual([134, true]);
    // Python may report its end, but nothing that the script would have returned.
    expect(result.stdout).not.toMatch(/^(?:b'|\d)/m);
    await goesOn();
  });

  it("cannot start programs, a shell or threads", async () => {
    const code = `
import os, subprocess, threading
for attempt in (lambda: subprocess.run(["true"]), lambda: os.fork(), lambda: os.execv("/bin/true", ["true"]), lambda: threading.Thread(target=print).start(), lambda: os.system("true")):
    try: print("possible", attempt())
    except (OSError, RuntimeError, AttributeError) as error: print("refused")
`;
    expect((await run(code)).stdout).toBe("refused\n".repeat(5));
  });

  it("cannot reach a server", async () => {
    let connections = 0;
    const server = net.createServer((socket) => {
      connections += 1;
      socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
    });
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    const { port } = addressOf(server.address());
    const code = `
import socket, urllib.request
for attempt in (lambda: socket.create_connection(("127.0.0.1", ${port}), 2).recv(10), lambda: urllib.request.urlopen("http://127.0.0.1:${port}", timeout=2).read()):
    try: print("answer", attempt())
    except Exception as error: print("refused")
try:
    from pyodide.http import pyfetch, open_url
    print("answer", open_url("http://127.0.0.1:${port}").read())
except Exception as error: print("refused")
`;
    const { stdout, exitCode } = await run(code, { timeoutMs: 120_000 });
    server.close();
    expect([exitCode, connections, stdout.match(/answer/g)]).toEqual([0, 0, null]);
    await goesOn();
  });

  it("cannot see files, variables or processes of the host", async () => {
    const code = `
import os
print(sorted(set(os.listdir("/")) - {"dev", "home", "lib", "proc", "tmp", "usr", "workspace", "lib64", "etc", "mnt"}))
for name in ("/etc/passwd", "/etc/hostname", "/proc/self/environ", "/proc/1/status", "/root", "/work", ${JSON.stringify(process.execPath)}):
    if os.path.exists(name): print("there is", name)
print(len(os.environ) < 15, os.getuid() >= 0)`;
    expect((await run(code)).stdout).toBe("[]\nTrue True\n");
    const [pid] = await interpreterProcesses(executor);
    const variables = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").filter(Boolean);
    expect(variables).toEqual([expect.stringMatching(/^FENCED_SESSION=/)]);
  });

  it("gets MemoryError at the limit, and keeps its variables", async () => {
    await run("kept = 'here'");
    const code = `
pieces = []
try:
    while True: pieces.append(bytearray(4_000_000))
except MemoryError: print(len(pieces) < 32)
del pieces`;
    expect((await run(code)).stdout).toBe("True\n");
    expect((await run("print(kept)")).stdout).toBe("here\n");
  });

  it.runIf(process.platform === "linux")(
    "is ended when its process takes memory that the limit does not count",
    async () => {
      const code = `
with open("/tmp/bomb", "wb") as file:
    while True: file.write(b"x" * 8_000_000)`;
      const result = await run(code);
      expect([result.exitCode, result.stateLost, result.timedOut]).toEqual([137, true, false]);
      expect(result.stderr).toMatch(/more than 640 MiB of memory/);
      await goesOn();
    },
  );

  it("gets ENOSPC when its files reach the limit", slow, async () => {
    await using small = new WasmCodeExecutor({ storageBytes: 4 * mebibyte, timeoutMs: 200_000 });
    const code = `
try:
    for number in range(10): open("f%d" % number, "wb").write(b"x" * 1_000_000)
except OSError as error: print(error.errno, error.strerror)
import os
for number in range(10):
    if os.path.exists("f%d" % number): os.remove("f%d" % number)
for number in range(100): open("again", "wb").write(b"x" * 1_000_000)
made = 0
try:
    while True:
        os.mkdir("d%d" % made); made += 1
except OSError as error: print(made < 10_000, error.strerror)`;
    const { stdout, exitCode } = await small.executeCodeBlocks([{ language: "python", code }]);
    expect([exitCode, stdout]).toEqual([0, "51 No space left on device\nTrue No space left on device\n"]);
  });

  it("loses no storage by renames that fail", slow, async () => {
    await using small = new WasmCodeExecutor({ storageBytes: mebibyte, timeoutMs: 200_000 });
    const code = `
import os
target = "t" * 255
os.makedirs(target + "/inner")
os.mkdir("source")
failed = 0
for _ in range(4_200):
    try: os.rename("source", target)
    except OSError: failed += 1
open("large", "wb").write(b"x" * 500_000)
print(failed)`;
    const { output } = await small.executeCodeBlocks([{ language: "python", code }]);
    expect(output).toBe("4200\n");
  });

  it("cannot give files an invalid time, and lists a large directory completely", slow, async () => {
    const code = `
import os
open("late", "w").close()
try: os.utime("late", (1e14, 1e14))
except OSError as error: print(error.strerror)
os.mkdir("large")
for number in range(4200): os.mkdir("large/%d" % number)
print(sorted(map(int, os.listdir("large"))) == list(range(4200)))`;
    expect((await run(code)).output).toBe("Invalid argument\nTrue\n");
    expect(Number((await executor.files.stat("late")).modifiedAt)).toBeLessThanOrEqual(Date.now());
  });

  it("does not keep the storage of files that were open when its interpreter died", async () => {
    let lost = false;
    const onSessionLost = (): void => {
      lost = true;
    };
    await using small = new WasmCodeExecutor({ storageBytes: 4 * mebibyte, onSessionLost });
    const code = `
import os
kept = open("large", "wb")
kept.write(b"x" * 3_000_000)
kept.flush()
os.remove("large")
print("done")`;
    const again = async (): Promise<string> => (await small.executeCodeBlocks([{ language: "python", code }])).output;
    expect(await again()).toBe("done\n");
    await killInterpreter(small);
    await expect.poll(() => lost).toBe(true);
    expect(await again()).toBe("done\n");
  });

  it.each([
    ["in Python", "while True: pass"],
    ["in C", "import re; re.match(r'(a+)+$', 'a' * 64 + 'b')"],
    ["that catches everything", "while True:\n  try:\n    while True: pass\n  except BaseException: pass"],
  ])("is ended in an endless loop %s", async (_name, code) => {
    const result = await run(code, { timeoutMs: 1000 });
    expect([result.exitCode, result.timedOut, result.stateLost]).toEqual([124, true, true]);
    await goesOn();
  });

  it("cannot forge messages of its process: no descriptor leads to the host", async () => {
    const done = String.raw`\x00\x00\x00\x17\x04\x00\x00\x00\x0f{"exitCode":42}`;
    const code = `
import os
for number in range(3, 200):
    try: os.write(number, b'${done}')
    except OSError: pass
print("still here")
raise SystemExit(7)`;
    const { exitCode, stdout } = await run(code);
    expect([exitCode, stdout]).toEqual([7, "still here\n"]);
  });

  it("ends with a result after os._exit and a stack overflow", async () => {
    const ended = await run("import os, sys; sys.stdout.flush(); os._exit(5)");
    expect([ended.exitCode, ended.stateLost]).toEqual([5, true]);
    const deep = await run("import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()");
    expect(deep.exitCode).not.toBe(0);
    await goesOn();
  });

  it("gets different random numbers in each session", async () => {
    await using other = new WasmCodeExecutor();
    const code = "import random, uuid, os; print(random.random(), uuid.uuid4(), os.urandom(8))";
    const [one, two] = await Promise.all([run(code), other.executeCodeBlocks([{ language: "python", code }])]);
    expect(one.exitCode + two.exitCode).toBe(0);
    const second = new Set(two.stdout.trim().split(" "));
    expect(
      one.stdout
        .trim()
        .split(" ")
        .filter((each) => second.has(each)),
    ).toEqual([]);
  });
});

function addressOf(address: AddressInfo | string | null): AddressInfo {
  if (typeof address !== "object" || address === null) throw new Error("The server has no address.");
  return address;
}
