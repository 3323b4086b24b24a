import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import { listProcesses } from "@fenced/executor-kit";
import { MemoryWatch } from "@fenced/executor-testkit";
import { jupyterPythons, needs } from "@fenced/test-support";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { JupyterCodeExecutor } from "../src/index.ts";
import { KernelApi } from "./support/kernel-api.ts";
import { anyVersion, sharedServer } from "./support/local-server.ts";
import { PlainServer } from "./support/plain-server.ts";
import { bash, python } from "./support/python.ts";

const patience = { timeout: 120_000 };
const stopItself = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)";
/** Makes the kernel stop itself once the cell that runs this has ended, and waits until it has. */
async function stopLater(executor: JupyterCodeExecutor): Promise<void> {
  const later = `lambda: (time.sleep(0.5), exec(${JSON.stringify(stopItself)}))`;
  const code = `import os, threading, time\nthreading.Thread(target=${later}).start()\nprint(os.getpid())`;
  const { output } = await executor.executeCodeBlocks([python(code)]);
  const state = async () => (await readFile(`/proc/${output.trim()}/stat`, "utf8")).replace(/^.*\) /, "")[0];
  await expect.poll(state, patience).toBe("T");
}

describe.each(anyVersion)("a kernel that its own code has stopped (%s)", (version) => {
  describe("on a local server", needs(version), () => {
    const { executor: create } = sharedServer(version);

    it("does not delay the result of the block beyond its limit", patience, async () => {
      await using executor = create();
      await executor.executeCodeBlocks([python("x = 1")]);
      const result = await executor.executeCodeBlocks([python(stopItself)], { timeoutMs: 1000 });
      expect(result).toMatchObject({ timedOut: true, stateLost: true });
      // It took 30 seconds when every request to the kernel was awaited.
      expect(result.durationMs).toBeLessThan(20_000);
      expect((await executor.executeCodeBlocks([python("print('x' in globals())")])).output).toBe("False\n");
    });

    it("does not delay the result of the next block beyond its limit", patience, async () => {
      await using executor = create();
      await stopLater(executor);
      const next = await executor.executeCodeBlocks([python("print(1)")], { env: { A: "1" }, timeoutMs: 1000 });
      expect(next).toMatchObject({ timedOut: true, stateLost: true, output: "" });
      expect((await executor.executeCodeBlocks([python("print(2)")])).output).toBe("2\n");
    });

    it("does not keep the executor from stopping", patience, async () => {
      const executor = create();
      await stopLater(executor);
      await executor.stop();
      await executor.start();
      const { output } = await executor.executeCodeBlocks([python("print('again')")]);
      expect(output).toBe("again\n");
      await executor.stop();
    });
  });
});

/** Starts a program whose first thread ends, so that it looks like a zombie, and waits. */
const withoutFirstThread = `
import subprocess, sys, time
program = '''
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
print(os.getpid(), flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
'''
child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, start_new_session=True)
print(int(child.stdout.readline()), flush=True)
time.sleep(1000)
`;

describe.skipIf(process.platform !== "linux")("a process whose first thread has ended", needs("jupyter"), () => {
  const { executor: create } = sharedServer("jupyter");

  it("ends with its block", patience, async () => {
    await using executor = create();
    const controller = new AbortController();
    let stdout = "";
    const read = async (): Promise<void> => {
      const { signal } = controller;
      for await (const event of executor.streamCodeBlocks([python(withoutFirstThread)], { signal })) {
        if (event.type !== "stdout") continue;
        stdout += event.text;
        if (stdout.endsWith("\n")) controller.abort(new Error("enough"));
      }
    };
    await expect(read()).rejects.toThrow("enough");
    expect(stdout).toMatch(/^\d+\n$/);
    expect((await listProcesses()).filter(({ pid }) => pid === Number(stdout))).toEqual([]);
  });
});

describe("a helper that code has changed", needs("jupyter"), () => {
  let server: PlainServer;
  beforeAll(async () => {
    server = await PlainServer.start(jupyterPythons.jupyter);
  }, 120_000);
  afterAll(() => server[Symbol.asyncDispose](), 120_000);

  const change = (name: string, answer: string) =>
    python(`import sys\nsys.modules["_fenced"].actions[${JSON.stringify(name)}] = lambda **asked: ${answer}`);

  it("cannot make the host list files endlessly or accept unsafe paths", patience, async () => {
    await using executor = new JupyterCodeExecutor({ server: server.settings });
    const { files } = executor;
    for (const answer of ["{'files': [], 'end': False}", "{'files': 5}", "None", "'x' * 1000"]) {
      await executor.executeCodeBlocks([change("list_files", answer)]);
      await expect(files.list()).rejects.toThrow(/invalid answer.*restart/);
    }
    const paths = `["../up", "/etc/passwd", "", 5, "a/../b", "fine"]`;
    const many = `{'files': [{'path': each, 'size': size} for each in ${paths} for size in (1, -1, 'x', 1e99)], 'end': True}`;
    await executor.executeCodeBlocks([change("list_files", many)]);
    expect(await files.list()).toEqual([{ path: "fine", size: 1 }]);
    const endless = `{'files': [{'path': 'x' * 100, 'size': 1}] * 50_000, 'end': False}`;
    await executor.executeCodeBlocks([change("list_files", endless)]);
    await expect(files.list()).rejects.toThrow(/too many files/);
    for (const answer of ["{'data': '', 'end': False}", "{'data': 'A' * 2_000_000, 'end': True}", "5"]) {
      await executor.executeCodeBlocks([change("read_file", answer)]);
      await expect(files.read("x")).rejects.toThrow(/invalid answer/);
    }
  });

  it("cannot keep a caller waiting by stopping the kernel", patience, async () => {
    await using executor = new JupyterCodeExecutor({ server: server.settings });
    await executor.files.write("x", "x");
    await stopLater(executor);
    const refused: unknown = await executor.files.read("x").catch((error: unknown) => error);
    expect(refused).toSatisfy(BackendUnavailableError.isInstance);
    expect(String(refused)).toMatch(/has not answered.*restart/);
  });

  it("leaves the old file when the kernel dies during an upload", patience, async () => {
    await using executor = new JupyterCodeExecutor({ server: server.settings, workDir: "uploads" });
    await executor.files.write("large", "before");
    const [kernel = ""] = await new KernelApi(serverAddress(server)).list();
    const temporary = path.dirname(server.directory);
    const writing = executor.files.write("large", randomBytes(100_000_000)).then(
      () => "written",
      (error: unknown) => error,
    );
    await until(async () =>
      (await readdir(temporary, { recursive: true })).some((name) => path.basename(name).startsWith("upload-")),
    );
    const kernels = await new KernelApi(serverAddress(server)).list();
    for (const each of kernels.length > 0 ? kernels : [kernel]) await new KernelApi(serverAddress(server)).remove(each);
    expect(await writing).toSatisfy(BackendUnavailableError.isInstance);
    expect(await readFile(path.join(server.directory, "uploads/large"), "utf8")).toBe("before");
  });

  it("can send messages that answer nothing, without losing others", patience, async () => {
    await using executor = new JupyterCodeExecutor({ server: server.settings });
    const code = `session = get_ipython().kernel.session
socket = get_ipython().kernel.iopub_socket
for parent in (None, 5, "x", [], {"msg_id": 5}, {"msg_id": "__proto__"}):
    message = session.msg("stream", {"name": "stdout", "text": "forged"})
    message["parent_header"] = parent
    session.send(socket, message)
print("done")`;
    expect(await executor.executeCodeBlocks([python(code)])).toMatchObject({ exitCode: 0, output: "done\n" });
  });

  it("removes directories of any depth", patience, async () => {
    await using executor = new JupyterCodeExecutor({ server: server.settings });
    const deep = "import os\nos.makedirs('top')\nos.chdir('top')\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')";
    await executor.executeCodeBlocks([
      bash("pwd > where"),
      python(`start = os.getcwd() if 'os' in dir() else None\n${deep}`),
    ]);
    const where = Buffer.from(await executor.files.read("where"))
      .toString()
      .trim();
    await executor.executeCodeBlocks([python(`os.chdir(${JSON.stringify(where)})`)]);
    await executor.files.remove("top");
    expect((await executor.files.list()).map((file) => file.path)).toEqual(["where"]);
  });
});

describe("cleaning up on this host", needs("jupyter"), () => {
  const { executor: create } = sharedServer();

  it("does not fail a shell block that replaces its own file", patience, async () => {
    await using executor = create();
    const result = await executor.executeCodeBlocks([bash('rm "$0"; mkdir "$0"; echo done')]);
    expect(result).toMatchObject({ exitCode: 0, stdout: "done\n", stderr: "" });
  });

  it("buffers little of what code writes to the server's own output", patience, async () => {
    await using executor = create();
    await executor.executeCodeBlocks([python("1")]);
    using memory = new MemoryWatch();
    // Kernels inherit the server's streams, and keep them when they redirect their own.
    const code = `import os, sys
for stream in (sys.stdout, sys.stderr):
    with open(os.dup(stream._original_stdstream_copy), "wb") as pipe:
        for _ in range(150): pipe.write(b"x" * 1_000_000)
print("done")`;
    const result = await executor.executeCodeBlocks([python(code)], { timeoutMs: 100_000 });
    expect(result).toMatchObject({ exitCode: 0, output: "done\n" });
    expect(memory.peak() / 2 ** 20).toBeLessThan(64);
  });

  it("removes a workspace of any depth", patience, async () => {
    const executor = create();
    const deep = `import os\nprint(os.getcwd())\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')\nos.chdir("/")`;
    const { output } = await executor.executeCodeBlocks([python(deep)]);
    await executor.stop();
    await expect(stat(output.trim())).rejects.toThrow(/ENOENT/);
  });
});

describe("a file that is sent in several requests", needs("jupyter", "irkernel"), () => {
  it("appears under its name only when it is complete", patience, async () => {
    await using server = await PlainServer.start(jupyterPythons.jupyter);
    await using executor = new JupyterCodeExecutor({ server: server.settings, kernelName: "ir", workDir: "work" });
    await executor.files.write("large", "before");
    const local = await mkdtemp(path.join(tmpdir(), "fenced-test-"));
    await writeFile(path.join(local, "large"), randomBytes(20_000_000));
    const sizes = new Set<number>();
    const uploading = { ended: false };
    const look = async (): Promise<void> => {
      while (!uploading.ended) {
        const stats = await stat(path.join(server.directory, "work/large")).catch(() => undefined);
        if (stats) sizes.add(stats.size);
        await sleep(1);
      }
    };
    const looking = look();
    await executor.files.upload([path.join(local, "large")]);
    uploading.ended = true;
    await looking;
    expect([...sizes].filter((size) => size !== 6 && size !== 20_000_000)).toEqual([]);
    expect(await executor.files.list()).toEqual([{ path: "large", size: 20_000_000 }]);
    await rm(local, { recursive: true });
  });
});

describe("a server with an endless answer", () => {
  it("is rejected once its answer exceeds a limit", async () => {
    const server = createServer((_request, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write(" ".repeat(1_000_000)));
      };
      response.on("drain", more);
      more();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    await using executor = new JupyterCodeExecutor({ server: { baseUrl: `http://127.0.0.1:${port}/` } });
    await expect(executor.start()).rejects.toThrow(/sent an answer longer than/);
    server.closeAllConnections();
    server.close();
  });
});

function serverAddress({ settings }: PlainServer) {
  return {
    baseUrl: settings.baseUrl,
    headers: { Authorization: `token ${settings.token}` },
    legacyWebSocket: false,
  };
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(5);
}
