import { execFileSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import {
  connectExecutor,
  ExecutorStoppedError,
  hostFunction,
  InvalidInputError,
  type SessionHandle,
} from "@fenced/core";
import { jupyterPythons, needs, nightly } from "@fenced/test-support";
import { cutUntil, numberLines, printNumbers } from "@fenced/test-support/cut-until";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { JupyterCodeExecutor, type JupyterExecutorOptions, LocalJupyterServer } from "../src/index.ts";
import { CuttingProxy } from "./support/cutting-proxy.ts";
import { keepers, remains } from "./support/kept-subject.ts";
import { KernelApi } from "./support/kernel-api.ts";
import { anyVersion } from "./support/local-server.ts";
import { PlainServer } from "./support/plain-server.ts";

const keepAliveMs = 120_000;
const python = (code: string) => [{ language: "python", code }];

it.each([
  ["a server that ends with the program", { server: new LocalJupyterServer() }],
  ["the default server", {}],
  ["a kernel of somebody else", { server: { baseUrl: "http://127.0.0.1:1/" }, kernelId: "some" }],
])("keepAliveMs is refused for %s", (_, options: JupyterExecutorOptions) => {
  expect(() => new JupyterCodeExecutor({ ...options, keepAliveMs })).toThrow(
    /"keepAliveMs" is 120000. It (?:needs a server|cannot be combined)/,
  );
});

describe.each(anyVersion)("on %s", (version) => {
  describe("a session that outlives its program", { ...needs(version), timeout: 120_000 }, () => {
    let server: PlainServer;
    let proxy: CuttingProxy;
    beforeAll(async () => {
      server = await PlainServer.start(jupyterPythons[version]);
    }, 120_000);
    afterAll(() => server[Symbol.asyncDispose](), 120_000);
    beforeEach(async () => {
      proxy = await CuttingProxy.start(server.settings.baseUrl);
    });
    afterEach(async () => {
      const left = await remains(server, 30_000);
      if (left.length > 0) throw new Error(`left behind: ${left.join(", ")}`);
      await proxy[Symbol.asyncDispose]();
    });

    const create = (options: JupyterExecutorOptions = {}): JupyterCodeExecutor =>
      new JupyterCodeExecutor({
        server: { ...server.settings, baseUrl: proxy.baseUrl },
        keepAliveMs,
        maxOutputBytes: 16_777_216,
        ...options,
      });

    const connect = (handle: SessionHandle | undefined, options = {}) => {
      if (!handle) throw new Error("there is no handle");
      return connectExecutor(handle, { ...options, importModule: () => import("../src/index.ts") });
    };

    async function deleteKernels(): Promise<void> {
      const { baseUrl, token = "" } = server.settings;
      const api = new KernelApi({ baseUrl, headers: { Authorization: `token ${token}` }, legacyWebSocket: false });
      for (const id of await api.list()) await api.remove(id);
    }

    const cut = (settled: Promise<unknown>): Promise<number> =>
      cutUntil(settled, { cut: () => proxy.cut(), isBack: () => proxy.channels > 0 });

    it("prints each byte once and in order while its connections break", async () => {
      await using executor = create();
      await executor.start();
      // The slower the machine, the fewer cuts while one block prints.
      for (let cuts = 0; cuts <= 3;) {
        const running = executor.executeCodeBlocks(python(printNumbers(30_000)));
        cuts += await cut(running);
        const result = await running;
        expect(result.output).toBe(numberLines(30_000));
        expect(result.stateLost).toBe(false);
      }
    });

    it("does so for 200 cuts", { ...nightly, timeout: 900_000 }, async () => {
      await using executor = create();
      await executor.start();
      for (let cuts = 0; cuts < 200;) {
        const running = executor.executeCodeBlocks(python(printNumbers(60_000)));
        cuts += await cut(running);
        expect((await running).output).toBe(numberLines(60_000));
      }
    });

    it("carries files, input, displays and calls of host functions while its connections break", async () => {
      const add = hostFunction({
        name: "add",
        description: "Adds.",
        input: z.object({ one: z.number(), other: z.number() }),
        execute: async ({ one, other }) => {
          await sleep(20);
          return one + other;
        },
      });
      await using executor = create({ functions: [add] });
      await executor.start();
      const content = Buffer.alloc(3_000_000, "0123456789abcdef");
      const work = async () => {
        await executor.files.write("large.bin", content);
        const back = await executor.files.read("large.bin");
        const stdin = Array.from({ length: 200 }, (_, index) => `${index}\n`).join("");
        const read = await executor.executeCodeBlocks(python("print(sum(int(input()) for _ in range(200)))"), {
          stdin,
        });
        const calls = "from functions import add\nn = 0\nfor i in range(10): n = add(one=n, other=i)\nprint(n)";
        const called = await executor.executeCodeBlocks(python(calls));
        const show = "from IPython.display import HTML\nfor i in range(100): display(HTML(f'<b>{i}</b>'))";
        const shown = await executor.executeCodeBlocks(python(show));
        return [content.equals(back), read.output, called.output, shown.displays.length];
      };
      for (let cuts = 0; cuts <= 2;) {
        const running = work();
        cuts += await cut(running);
        expect(await running).toEqual([true, "19900\n", "45\n", 100]);
      }
    });

    it("lets the code wait when nobody reads what it prints, and keeps what it has printed", async () => {
      await using executor = create();
      await executor.start();
      const code = [
        "import os",
        "for i in range(150):",
        "    print('x' * 99_999)",
        "    open('count', 'w').write(str(i + 1))",
      ].join("\n");
      const running = executor.executeCodeBlocks(python(code));
      const counted = async () => Number(Buffer.from(await executor.files.read("count").catch(() => Buffer.from("0"))));
      await expect.poll(counted).toBeGreaterThan(0);
      proxy.isRefusing = true;
      proxy.cut();
      await sleep(3000);
      proxy.isRefusing = false;
      expect(await running).toMatchObject({ exitCode: 0, output: `${"x".repeat(99_999)}\n`.repeat(150) });
    });

    it("rejects the calls of a program whose session was taken over, also those in progress", async () => {
      const first = create();
      await first.start();
      await first.executeCodeBlocks(python("x = 1"));
      const running = first.executeCodeBlocks(python("import time\nwhile True: time.sleep(0.05)"));
      const failure = running.catch((error: unknown) => error);
      await sleep(500);
      await using second = await connect(first.handle, { takeOver: true });
      expect(await failure).toBeInstanceOf(ExecutorStoppedError);
      await first.stop();
      const result = await second.executeCodeBlocks(python("print(x)"));
      expect(result).toMatchObject({ output: "1\n", stateLost: false });
      await second.stop();
    });

    it("replaces a kernel that the last program's block does not let go of, and keeps the files", async () => {
      const first = create();
      await first.start();
      await first.files.write("kept.txt", "kept");
      const stubborn =
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nopen('begun', 'w').close()\nwhile True: time.sleep(0.05)";
      const running = first.executeCodeBlocks(python(stubborn));
      const failure = running.catch((error: unknown) => error);
      await expect.poll(async () => (await first.files.list()).map(({ path }) => path)).toContain("begun");
      const { handle } = first;
      await first.detach();
      expect(await failure).toBeInstanceOf(ExecutorStoppedError);
      await using second = await connect(handle);
      const result = await second.executeCodeBlocks(python("print(open('kept.txt').read())"));
      expect(result).toMatchObject({ output: "kept\n", stateLost: true });
      await second.stop();
    });

    it("is lost when code ends its keeper, and the next call starts another one", async () => {
      await using executor = create();
      await executor.start();
      const { handle } = executor;
      for (const pid of await keepers(server)) process.kill(pid, "SIGKILL");
      await expect.poll(() => keepers(server)).toEqual([]);
      // What is sent to a kernel that is ending counts as lost.
      await executor.executeCodeBlocks(python("print('lost')"));
      const result = await executor.executeCodeBlocks(python("print('again')"));
      expect(result.output).toBe("again\n");
      expect(executor.handle).not.toEqual(handle);
      await executor.stop();
    });

    it("leaves nothing once a program has connected in vain, after its keeper was killed", async () => {
      const executor = create();
      await executor.files.write("file.txt", "x");
      const { handle } = executor;
      await executor.detach();
      for (const pid of await keepers(server)) process.kill(pid, "SIGKILL");
      await expect(connect(handle)).rejects.toThrow(/has ended/);
      await expect.poll(() => remains(server), { timeout: 90_000, interval: 500 }).toEqual([]);
    });

    // The server takes some 18 s to give the kernel up.
    it("leaves nothing when its keeper is killed and nobody connects", async () => {
      const executor = create();
      await executor.executeCodeBlocks(python("open('file.txt', 'w').write('x')"));
      await executor.executeCodeBlocks(
        python("import subprocess\nchild = subprocess.Popen(['sleep', '600'], start_new_session=True)"),
      );
      await executor.detach();
      for (const pid of await keepers(server)) process.kill(pid, "SIGKILL");
      await expect.poll(() => remains(server), { timeout: 90_000, interval: 500 }).toEqual([]);
    });

    it("does not let another user end what a kernel that has died has left", needs("root"), async () => {
      const first = create();
      await first.files.write("kept.txt", "kept");
      const { output } = await first.executeCodeBlocks(python("import os; print(os.getpid())"));
      const { handle } = first;
      await first.detach();
      process.kill(Number(output), "SIGKILL");
      const strange = `import socket, sys, time
for _ in range(20):
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect("\\0" + sys.argv[1])
            connection.sendall(b"over")
            print(len(connection.recv(1)))
        except OSError:
            print(0)
    time.sleep(0.1)`;
      const user = { uid: 65_532, gid: 65_532, cwd: "/", encoding: "utf8" } as const;
      const { socket } = z.object({ socket: z.string() }).parse(handle?.session);
      const said = execFileSync("/usr/bin/env", ["python3", "-c", strange, socket], user);
      expect(said).toBe("0\n".repeat(20));
      await using second = await connect(handle);
      expect(Buffer.from(await second.files.read("kept.txt")).toString()).toBe("kept");
      await second.stop();
    });

    it.each(["killed", "deleted"])("leaves nothing when it is stopped after its kernel was %s", async (how) => {
      const executor = create();
      await executor.executeCodeBlocks(python("open('file.txt', 'w').write('x')"));
      if (how === "killed") {
        await executor.executeCodeBlocks(python("import os; os._exit(1)"));
      } else {
        await deleteKernels();
        await executor.executeCodeBlocks(python("print('lost')"));
      }
      await executor.stop();
      expect(await remains(server, 30_000)).toEqual([]);
    });

    // The kernel does not answer until its keeper has given it up.
    it("ends by itself although its code holds the interpreter's lock", nightly, async () => {
      const executor = create({ keepAliveMs: 1000 });
      await executor.executeCodeBlocks(python("open('file.txt', 'w').write('x')"));
      const running = executor.executeCodeBlocks(
        python("import ctypes\nprint('begun')\nctypes.PyDLL(None).sleep(600)"),
      );
      const failure = running.catch((error: unknown) => error);
      await sleep(1000);
      await executor.detach();
      expect(await failure).toBeInstanceOf(ExecutorStoppedError);
      await expect.poll(() => remains(server), { timeout: 90_000, interval: 1000 }).toEqual([]);
    });

    it("tells a program that connects too late that the session has ended", async () => {
      const executor = create();
      await executor.start();
      const { handle } = executor;
      await executor.stop();
      await expect(connect(handle)).rejects.toThrow(/has ended: the server no longer has its kernel/);
    });

    // The server takes some 18 s to give the kernel up.
    it("tells so also while the server still tries to start its kernel again", nightly, async () => {
      const executor = create({ keepAliveMs: 1000 });
      await executor.start();
      const { handle } = executor;
      await executor.detach();
      await expect.poll(() => keepers(server), { timeout: 60_000 }).toEqual([]);
      await expect(connect(handle)).rejects.toThrow(/has ended: .* Nobody was connected/);
      await expect.poll(() => remains(server), { timeout: 90_000, interval: 500 }).toEqual([]);
    });

    it("ends when its kernel is deleted on the server, and the next call starts another one", async () => {
      await using executor = create();
      await executor.executeCodeBlocks(python("x = 1\nopen('kept.txt', 'w').write('kept')"));
      await deleteKernels();
      const lost = await executor.executeCodeBlocks(python("print('lost')"));
      expect(lost).toMatchObject({ stateLost: true });
      const result = await executor.executeCodeBlocks(python("print(open('kept.txt').read())"));
      expect(result.output).toBe("kept\n");
      await executor.stop();
    });
  });
});

describe("with another kernel", needs("irkernel", "jupyter2"), () => {
  it("keepAliveMs is refused", async () => {
    await using server = await PlainServer.start(jupyterPythons.jupyter2);
    await using executor = new JupyterCodeExecutor({ server: server.settings, kernelName: "ir", keepAliveMs });
    await expect(executor.start()).rejects.toThrow(InvalidInputError);
    await executor.stop();
    expect(await remains(server, 30_000)).toEqual([]);
  });
});
