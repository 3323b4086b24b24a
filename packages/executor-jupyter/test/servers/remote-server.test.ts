import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, ComponentError, InvalidInputError } from "@fenced/core";
import { beginBlock } from "@fenced/executor-testkit";
import { jupyterPythons, needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { JupyterCodeExecutor } from "../../src/index.ts";
import { KernelApi } from "../support/kernel-api.ts";
import { anyVersion, sharedServer } from "../support/local-server.ts";
import { PlainServer } from "../support/plain-server.ts";
import { python } from "../support/python.ts";
import { TlsProxy } from "../support/tls-proxy.ts";

/** Kernels start one after another, and each takes two thirds of a second of CPU time. */
const many = process.env["FENCED_SUITE"] === "full" ? 50 : 8;
const patience = { timeout: 120_000 };

describe.each(anyVersion)("a remote server (%s)", (version) => {
  describe("behind a proxy", needs(version, "openssl"), () => {
    const { server, address } = sharedServer(version);

    const proxied = async () => {
      const { baseUrl, token } = await address();
      const proxy = await TlsProxy.start(new URL(baseUrl));
      return { proxy, settings: { baseUrl: proxy.baseUrl, token, ca: proxy.ca } };
    };

    it("is reached through https and wss, under a path prefix and with its own authority", patience, async () => {
      const { proxy, settings } = await proxied();
      await using _ = proxy;
      await using executor = new JupyterCodeExecutor({ server: settings });
      await executor.executeCodeBlocks([python("x = 6")]);
      const result = await executor.executeCodeBlocks([python("x * 7")]);
      expect(result.output).toBe("42\n");
      expect(executor.capabilities.isolation).toBe("remote");
      expect(proxy.requests.length).toBeGreaterThan(1);
      for (const path of proxy.requests) expect(path).toMatch(/^\/user\/some%20one\/api\//);
    });

    it("never gets the token in a URL", patience, async () => {
      const { proxy, settings } = await proxied();
      await using _ = proxy;
      await using executor = new JupyterCodeExecutor({
        server: { ...settings, baseUrl: `${proxy.baseUrl}?token=${settings.token}` },
      });
      await executor.executeCodeBlocks([python("1")]);
      expect(proxy.requests.join("\n")).not.toContain(settings.token);
    });

    it("causes a clear error without its authority", patience, async () => {
      const { proxy, settings } = await proxied();
      await using _ = proxy;
      const { ca: _ca, ...untrusted } = settings;
      await using executor = new JupyterCodeExecutor({ server: untrusted });
      await expect(executor.start()).rejects.toThrow(/cannot be reached: .*certificate.* as `ca`/s);
    });

    it("causes an error that names the right scheme or host", patience, async () => {
      const { proxy, settings } = await proxied();
      await using _ = proxy;
      const startAt = async (baseUrl: string) => {
        await using executor = new JupyterCodeExecutor({ server: { ...settings, baseUrl } });
        await executor.start();
      };
      await expect(startAt(proxy.baseUrl.replace("https:", "http:"))).rejects.toThrow(/begins with https:/);
      await expect(startAt(proxy.baseUrl.replace("localhost", "127.0.0.1"))).rejects.toThrow(
        /not valid for 127\.0\.0\.1/,
      );
    });

    it("is reached by the address of a page", patience, async () => {
      const { proxy, settings } = await proxied();
      await using _ = proxy;
      for (const page of ["lab/tree/a.ipynb", "notebooks/a.ipynb?kernel_name=python3", "tree/lab"]) {
        await using executor = new JupyterCodeExecutor({ server: { ...settings, baseUrl: `${proxy.baseUrl}${page}` } });
        expect((await executor.executeCodeBlocks([python("6 * 7")])).output).toBe("42\n");
      }
      for (const path of proxy.requests) expect(path).toMatch(/^\/user\/some%20one\/api\//);
    });

    it("loses no output when the connection breaks during a cell", patience, async () => {
      const { proxy, settings } = await proxied();
      await using _ = proxy;
      await using executor = new JupyterCodeExecutor({ server: settings });
      await executor.start();
      const code = "import time\nfor i in range(30): print(i, flush=True); time.sleep(0.1)";
      const running = await beginBlock(executor, python(code));
      proxy.breakConnections();
      const result = await running.result;
      expect(result).toMatchObject({ exitCode: 0, stateLost: false });
      expect(result.output).toBe(Array.from({ length: 30 }, (_value, index) => `${index}\n`).join(""));
    });

    it("completes a file transfer once it is reachable again", patience, async () => {
      const { proxy, settings } = await proxied();
      await using _ = proxy;
      await using executor = new JupyterCodeExecutor({ server: settings });
      await executor.executeCodeBlocks([python("kept = 'here'")]);
      proxy.refusesSockets = true;
      proxy.breakConnections();
      await sleep(500);
      const writing = executor.files.write("file", "of then");
      await sleep(500);
      proxy.refusesSockets = false;
      await writing;
      const result = await executor.executeCodeBlocks([python("print(kept, open('file').read())")]);
      expect(result.output).toBe("here of then\n");
    });

    // A server does that while it is starting a kernel again that has died.
    it("is asked again to end a kernel if it has failed to", patience, async () => {
      const { proxy, settings } = await proxied();
      await using _ = proxy;
      const api = new KernelApi(await address());
      const before = await api.list();
      const executor = new JupyterCodeExecutor({ server: settings });
      await executor.start();
      expect(await api.list()).not.toEqual(before);
      proxy.refusedDeletions = 2;
      await executor.stop();
      expect(await api.list()).toEqual(before);
    });

    it("fails the call if it stays unreachable", patience, async () => {
      const { proxy, settings } = await proxied();
      const api = new KernelApi(await address());
      const before = await api.list();
      // The executor cannot clean up what it cannot reach, so the test removes the work directory and the kernel.
      const workDir = await mkdtemp(join(tmpdir(), "fenced-test-"));
      const executor = new JupyterCodeExecutor({ server: settings, reconnectTimeoutMs: 2000, workDir });
      await executor.start();
      const { result } = await beginBlock(executor, python("import time; print(1, flush=True); time.sleep(300)"));
      await proxy[Symbol.asyncDispose]();
      await expect(result).rejects.toSatisfy(BackendUnavailableError.isInstance);
      await executor.stop();
      for (const id of await api.list()) if (!before.includes(id)) await api.remove(id);
      await rm(workDir, { recursive: true });
    });

    it("also supports the old WebSocket protocol", patience, async () => {
      const { proxy, settings } = await proxied();
      await using _ = proxy;
      await using executor = new JupyterCodeExecutor({ server: { ...settings, legacyWebSocket: true } });
      expect((await executor.executeCodeBlocks([python("print('grüße 🎈')")])).output).toBe("grüße 🎈\n");
    });

    it("loses only a message with too many values, over the old WebSocket protocol, too", patience, async () => {
      const { proxy, settings } = await proxied();
      await using _ = proxy;
      await using executor = new JupyterCodeExecutor({ server: { ...settings, legacyWebSocket: true } });
      const code = `from IPython.display import display
display({"application/json": [{}] * 400_001}, raw=True)
print("after")`;
      const result = await executor.executeCodeBlocks([python(code)]);
      expect(result).toMatchObject({ exitCode: 0, stdout: "after\n", truncated: true, stateLost: false, displays: [] });
    });

    it("reports a wrong token in an error that does not show it", patience, async () => {
      const { baseUrl } = await address();
      await using executor = new JupyterCodeExecutor({ server: { baseUrl, token: "not-the-token" } });
      const error: unknown = await executor.start().catch((thrown: unknown) => thrown);
      expect(BackendUnavailableError.isInstance(error)).toBe(true);
      expect(String(error)).toMatch(/does not accept the token/);
      expect(String(error)).not.toContain("not-the-token");
    });

    it("lists its kernels when asked for an unknown one", patience, async () => {
      await using executor = new JupyterCodeExecutor({ server, kernelName: "no-such-kernel" });
      await expect(executor.start()).rejects.toThrow(/no kernel named "no-such-kernel".*python3/);
      await expect(executor.start()).rejects.toSatisfy(InvalidInputError.isInstance);
    });

    it("lends a kernel that already runs, and keeps it running", patience, async () => {
      const api = new KernelApi(await address());
      const kernelId = await api.start();
      const first = new JupyterCodeExecutor({ server, kernelId });
      await first.executeCodeBlocks([python("kept = 'here'")]);
      await first.stop();
      await using second = new JupyterCodeExecutor({ server, kernelId });
      expect((await second.executeCodeBlocks([python("print(kept)")])).output).toBe("here\n");
      await second.restart();
      expect((await second.executeCodeBlocks([python("print('kept' in globals())")])).output).toBe("False\n");
      await second.stop();
      expect(await api.list()).toContain(kernelId);
      await api.remove(kernelId);
    });

    it("lets executors share a relative workDir, below where it starts kernels", patience, async () => {
      const { baseUrl, token } = await address();
      const directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
      const options = { server: { baseUrl, token }, workDir: join(directory, "deep").slice(1) };
      await using one = new JupyterCodeExecutor(options);
      await using other = new JupyterCodeExecutor(options);
      await one.files.write("shared.txt", "here");
      expect((await other.executeCodeBlocks([python("print(open('shared.txt').read())")])).output).toBe("here\n");
      await Promise.all([one.stop(), other.stop()]);
      expect(await readdir(join(directory, "deep"))).toEqual(["shared.txt"]);
      await rm(directory, { recursive: true });
    });

    it("transfers files while a block runs", patience, async () => {
      const { baseUrl, token } = await address();
      await using executor = new JupyterCodeExecutor({ server: { baseUrl, token } });
      const code = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)\nprint('gone')";
      const running = executor.executeCodeBlocks([python(`open('here.txt', 'w').write('here')\n${code}`)]);
      await expect.poll(() => executor.files.list(), patience).toEqual([{ path: "here.txt", size: 4 }]);
      expect(Buffer.from(await executor.files.read("here.txt")).toString()).toBe("here");
      await executor.files.write("go", "");
      expect((await running).output).toBe("gone\n");
    });

    it("gets no new kernel from a file transfer that stop() interrupts", patience, async () => {
      const { baseUrl, token } = await address();
      const api = new KernelApi(await address());
      const before = await api.list();
      await using executor = new JupyterCodeExecutor({ server: { baseUrl, token } });
      await executor.start();
      const writing = executor.files.write("large", Buffer.alloc(50_000_000));
      writing.catch(() => {});
      // This is answered after the first piece has arrived.
      await executor.files.list();
      await executor.stop();
      await expect(writing).rejects.toThrow(/stopped|closed/);
      expect(await api.list()).toEqual(before);
    });

    it("keeps no kernel that was starting when the executor stopped", patience, async () => {
      const { proxy, settings } = await proxied();
      await using _ = proxy;
      const api = new KernelApi(await address());
      const before = await api.list();
      await using executor = new JupyterCodeExecutor({ server: settings });
      // It may have started when the executor is stopped.
      const starting = executor.start().catch(() => {});
      await expect.poll(() => proxy.requests.some((path) => path.endsWith("/api/kernels")), patience).toBe(true);
      await executor.stop();
      await starting;
      await sleep(2000);
      expect(await api.list()).toEqual(before);
    });

    it("rejects a kernel id that does not exist", patience, async () => {
      await using executor = new JupyterCodeExecutor({ server, kernelId: "00000000-0000-4000-8000-000000000000" });
      await expect(executor.start()).rejects.toThrow(/no kernel with the id/);
    });

    it(`serves ${many} executors at once`, { timeout: 600_000 }, async () => {
      const api = new KernelApi(await address());
      const before = await api.list();
      const executors = Array.from({ length: many }, () => new JupyterCodeExecutor({ server }));
      try {
        const results = await Promise.all(
          executors.map((executor, index) =>
            executor.executeCodeBlocks([python(`mine = ${index}`), python("print(mine)")], { timeoutMs: 300_000 }),
          ),
        );
        expect(results.map(({ output }) => output)).toEqual(executors.map((_executor, index) => `${index}\n`));
      } finally {
        await Promise.all(executors.map((executor) => executor.stop()));
      }
      expect(await api.list()).toEqual(before);
    });
  });
});

describe("a server without a token", needs("jupyter", "jupyter2"), () => {
  it.each(["jupyter", "jupyter2"] as const)("runs blocks (%s)", patience, async (version) => {
    await using server = await PlainServer.start(jupyterPythons[version], "open");
    await using executor = new JupyterCodeExecutor({ server: server.settings });
    expect((await executor.executeCodeBlocks([python("6 * 7")])).output).toBe("42\n");
  });

  it.each(["jupyter", "jupyter2"] as const)("is logged in to with a password (%s)", patience, async (version) => {
    await using server = await PlainServer.start(jupyterPythons[version], "password");
    const { baseUrl } = server.settings;
    await using executor = new JupyterCodeExecutor({ server: server.settings });
    expect((await executor.executeCodeBlocks([python("6 * 7")])).output).toBe("42\n");
    expect(() => executor.dumpComponent()).toThrow(ComponentError);
    await using none = new JupyterCodeExecutor({ server: { baseUrl } });
    await expect(none.start()).rejects.toThrow(/requires a token or a password/);
    await using wrong = new JupyterCodeExecutor({ server: { baseUrl, password: "not-the-password" } });
    const error: unknown = await wrong.start().catch((thrown: unknown) => thrown);
    expect(String(error)).toMatch(/does not accept the password/);
    expect(String(error)).not.toContain("not-the-password");
  });
});

describe("the URL of a server", () => {
  it.each([
    ["/user/me", "/user/me/"],
    ["/user/me/lab/tree/a.ipynb?token=x", "/user/me/"],
    ["/user/lab/lab/workspaces/one", "/user/lab/"],
    ["/user/lab", "/user/lab/"],
    ["/hub-of/team/user/tree/notebooks/sub/a.ipynb", "/hub-of/team/user/tree/"],
    ["/lab?token=x", "/"],
    ["/base/tree", "/base/"],
    ["", "/"],
  ])("may be that of a page: %s", async (path, prefix) => {
    await using server = await NoJupyter.start();
    await using executor = new JupyterCodeExecutor({ server: { baseUrl: `http://127.0.0.1:${server.port}${path}` } });
    await expect(executor.start()).rejects.toThrow(/answered 404/);
    expect(server.asked.length).toBeGreaterThan(0);
    for (const each of server.asked) expect(each.slice(0, prefix.length + 4)).toBe(`${prefix}api/`);
  });

  it("causes an error that names the scheme if the server does not speak TLS", async () => {
    await using server = await NoJupyter.start();
    await using executor = new JupyterCodeExecutor({ server: { baseUrl: `https://127.0.0.1:${server.port}/` } });
    await expect(executor.start()).rejects.toThrow(/begins with http:/);
  });

  it.each(["localhost:8888", "ftp://host/", "http://user:secret@host/", ""])(
    "is rejected if it is not usable: %s",
    (baseUrl) => {
      const make = () => new JupyterCodeExecutor({ server: { baseUrl } });
      expect(make).toThrow(/not a usable URL/);
      expect(make).not.toThrow(/secret/);
    },
  );

  it("where nothing answers causes a clear error", async () => {
    await using executor = new JupyterCodeExecutor({ server: { baseUrl: "http://127.0.0.1:9/" } });
    await expect(executor.start()).rejects.toThrow(/http:\/\/127\.0\.0\.1:9\/ cannot be reached/);
  });
});

/** A web server that is not Jupyter's. */
class NoJupyter implements AsyncDisposable {
  /** Paths, with their query, of all requests. */
  readonly asked: string[] = [];
  readonly #server = createServer((request, response) => {
    this.asked.push(request.url ?? "");
    response.writeHead(404).end();
  });

  static async start(): Promise<NoJupyter> {
    const started = new NoJupyter();
    await new Promise<void>((resolve) => {
      started.#server.listen(0, "127.0.0.1", resolve);
    });
    return started;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => {
      this.#server.close(resolve);
    });
    this.#server.closeAllConnections();
    await closed;
  }
}
