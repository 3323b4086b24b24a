import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect, createServer as createTcpServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import {
  BackendUnavailableError,
  connectExecutor,
  type ExecutorCapabilities,
  InvalidInputError,
  loadComponent,
} from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs, nightly } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { E2BCodeExecutor, type E2BExecutorOptions } from "../../src/index.ts";
import { killSandbox, sandboxed, sandboxesOf } from "../support/executor-subject.ts";
import { apiKey, otherKey, startServer, type TestServer } from "../support/start-server.ts";

const importModule = () => import("../../src/index.ts");
const timeout = 120_000;

function executorOn({ url }: Pick<TestServer, "url">, options: E2BExecutorOptions = {}): E2BCodeExecutor {
  const executor = new E2BCodeExecutor({ apiUrl: url, sandboxUrl: url, apiKey, ...options });
  onTestFinished(() => executor.stop().catch(() => {}));
  return executor;
}

/** Prints numbers for some seconds, so that connections can break in between. */
const counting = {
  language: "python",
  code: "import time\nfor each in range(200):\n    print(each, flush=True)\n    time.sleep(0.01)",
};
const counted = Array.from({ length: 200 }, (_, index) => `${index}\n`).join("");

/** Passes connections on, and can break all of them. */
async function breakable(url: string): Promise<{ readonly url: string; readonly cut: () => void }> {
  const sockets = new Set<Socket>();
  const proxy = createTcpServer((client) => {
    const server = connect(Number(new URL(url).port), "127.0.0.1");
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {}).on("close", () => to.destroy());
      from.pipe(to);
    }
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const cut = (): void => {
    for (const each of sockets) each.destroy();
    sockets.clear();
  };
  onTestFinished(() => {
    cut();
    proxy.close();
  });
  return { url: urlOf(proxy), cut };
}

/** When a sandbox ends by itself. */
async function endOf({ url }: TestServer, id: string): Promise<number> {
  const response = await fetch(`${url}/sandboxes/${id}`, { headers: { "x-api-key": apiKey } });
  const sandbox: unknown = await response.json();
  return Date.parse(String(Reflect.get(Object(sandbox), "endAt")));
}

function urlOf(server: Pick<Server, "address">): string {
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
}

describe("E2BCodeExecutor", needs("python3", "bash", "bubblewrap"), () => {
  it("loses nothing when all connections break during a block", { timeout }, async () => {
    await using server = await startServer(sandboxed);
    const proxy = await breakable(server.url);
    const executor = executorOn(proxy);
    await executor.start();
    const { sandboxId } = executor;
    const running = executor.executeCodeBlocks([counting]);
    for (let times = 0; times < 4; times += 1) {
      await sleep(400);
      proxy.cut();
    }
    expect(await running).toMatchObject({ exitCode: 0, output: counted, stateLost: false });
    expect(executor.sandboxId).toBe(sandboxId);
  });

  it("says that the sandbox was killed, and uses a new one", { timeout }, async () => {
    await using server = await startServer(sandboxed);
    const reasons: string[] = [];
    const executor = executorOn(server, { onSessionLost: (reason) => void reasons.push(reason) });
    await executor.start();
    const first = executor.sandboxId ?? "";
    await killSandbox(server, first);
    await expect.poll(() => reasons, { timeout: 60_000 }).toEqual([expect.stringContaining(`${first} has ended`)]);
    const result = await executor.executeCodeBlocks([{ language: "bash", code: "echo again" }]);
    expect(result).toMatchObject({ output: "again\n", stateLost: true });
    expect(executor.sandboxId).not.toBe(first);
    await executor.stop();
    expect(await sandboxesOf(server)).toEqual([]);
  });

  it(
    "asks for a sandbox that ends soon by itself, and for more time as long as it lives",
    { ...nightly, timeout },
    async () => {
      await using server = await startServer(sandboxed);
      const executor = executorOn(server);
      await executor.start();
      const first = await endOf(server, executor.sandboxId ?? "");
      expect(first - Date.now()).toBeLessThanOrEqual(120_000);
      await expect.poll(() => endOf(server, executor.sandboxId ?? ""), { timeout: 90_000 }).toBeGreaterThan(first);
    },
  );

  it("kills a sandbox in which no session can be started, and says why", { timeout }, async () => {
    await using server = await startServer(sandboxed);
    const executor = executorOn(server, { workDir: "/proc/nowhere" });
    const error: unknown = await executor.start().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(BackendUnavailableError);
    expect(String(error)).toMatch(/cannot run code: .*nowhere/);
    expect(await sandboxesOf(server)).toEqual([]);
  });

  it.each<[string, E2BExecutorOptions, RegExp]>([
    ["a key that is not valid", { apiKey: otherKey.replace("1", "2") }, /401: The API key is missing or not valid/],
    [
      "an unknown template",
      { template: "none" },
      /404: template 'none' not found.*Use a template that the service has/,
    ],
    ["a time that is too long", { keepAliveMs: 90_000_000 }, /Timeout cannot be greater than 24 hours.*keepAliveMs/],
  ])("explains %s", { timeout }, async (_, options, message) => {
    await using server = await startServer(sandboxed);
    const executor = executorOn(server, options);
    await expect(executor.start()).rejects.toThrow(message);
  });

  it("explains that nobody answers, and that there is no key", async () => {
    const closed = createServer().listen(0, "127.0.0.1");
    await once(closed, "listening");
    const url = urlOf(closed);
    closed.close();
    await expect(executorOn({ url }).start()).rejects.toThrow(`Check that ${url} is the service and can be reached.`);
    const keyless = new E2BCodeExecutor({ apiKeyVariable: "FENCED_NO_SUCH_KEY", apiUrl: "http://127.0.0.1:1" });
    await expect(keyless.start()).rejects.toThrow("the environment variable FENCED_NO_SUCH_KEY is not set");
  });

  it("uses the second version of the control API where there is no first one", { timeout }, async () => {
    await using server = await startServer(sandboxed);
    const old = createServer((request, response) => {
      if (request.method === "POST" && request.url === "/sandboxes") {
        response.writeHead(404, { "content-type": "application/json" }).end('{"code":404,"message":"no such route"}');
        return;
      }
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { host: _, "content-length": __, connection: ___, ...headers } = request.headers;
        const body = Buffer.concat(chunks);
        const init = { method: request.method ?? "GET", ...(body.length > 0 && { body }) };
        const sent = fetch(`${server.url}${request.url ?? ""}`, {
          ...init,
          headers: Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]),
        });
        void sent.then(async (answer) => {
          response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text());
        });
      });
    }).listen(0, "127.0.0.1");
    await once(old, "listening");
    onTestFinished(() => void old.close());
    const executor = executorOn(server, { apiUrl: urlOf(old) });
    const result = await executor.executeCodeBlocks([{ language: "bash", code: "echo two" }]);
    expect(result.output).toBe("two\n");
    await executor.stop();
    expect(await sandboxesOf(server)).toEqual([]);
  });

  it("refuses to be dumped with its key, and loads without it", { timeout }, async () => {
    await using server = await startServer(sandboxed);
    const { url } = server;
    expect(() => executorOn(server).dumpComponent()).toThrow("apiKey is a secret");
    process.env["FENCED_TEST_KEY"] = apiKey;
    onTestFinished(() => void delete process.env["FENCED_TEST_KEY"]);
    const settings = { apiUrl: url, sandboxUrl: url, apiKeyVariable: "FENCED_TEST_KEY" };
    const model = new E2BCodeExecutor(settings).dumpComponent();
    expect(JSON.stringify(model)).not.toContain(apiKey);
    await using loaded = await loadComponent<E2BCodeExecutor>(model, { importModule });
    expect((await loaded.executeCodeBlocks([{ language: "bash", code: "echo loaded" }])).output).toBe("loaded\n");
  });

  it("lets another program connect with a handle that has no key", { timeout }, async () => {
    await using server = await startServer(sandboxed);
    const executor = executorOn(server, { keepAliveMs: 60_000, stateful: true });
    await executor.executeCodeBlocks([{ language: "python", code: "x = 41" }]);
    const { handle, sandboxId } = executor;
    if (!handle) throw new Error("there is no handle");
    expect(JSON.stringify(handle)).not.toContain(apiKey);
    await executor.detach();
    process.env["E2B_API_KEY"] = apiKey;
    onTestFinished(() => void delete process.env["E2B_API_KEY"]);
    const again = await connectExecutor(handle, { importModule });
    expect((await again.executeCodeBlocks([{ language: "python", code: "x + 1" }])).output).toBe("42\n");
    expect(again instanceof E2BCodeExecutor && again.sandboxId).toBe(sandboxId);
    await again.stop();
    expect(await sandboxesOf(server)).toEqual([]);
  });

  it("leaves no sandbox when nobody comes back to a session in time", { timeout }, async () => {
    await using server = await startServer(sandboxed);
    const executor = executorOn(server, { keepAliveMs: 500 });
    await executor.start();
    await executor.detach();
    await expect.poll(() => sandboxesOf(server), { timeout: 60_000 }).toEqual([]);
  });

  it("refuses to pause what nobody could connect to again", async () => {
    const executor = new E2BCodeExecutor({ apiKey });
    await expect(executor.pause()).rejects.toThrow(InvalidInputError);
  });

  it("does not lose a session that the service does not pause with its programs", { timeout }, async () => {
    await using server = await startServer(sandboxed);
    const executor = executorOn(server, { keepAliveMs: 60_000, stateful: true });
    await executor.executeCodeBlocks([{ language: "python", code: "x = 41" }]);
    const { handle } = executor;
    if (!handle) throw new Error("there is no handle");
    await expect(executor.pause()).rejects.toThrow(/could not be paused: 501: .* not its memory/);
    process.env["E2B_API_KEY"] = apiKey;
    onTestFinished(() => void delete process.env["E2B_API_KEY"]);
    await using again = await connectExecutor(handle, { importModule });
    expect((await again.executeCodeBlocks([{ language: "python", code: "x + 1" }])).output).toBe("42\n");
  });

  it("does not start in a sandbox that is not cut off although it should be", { timeout }, async () => {
    /** Says that it has no network. */
    class Untrue extends LocalCommandLineCodeExecutor {
      override get capabilities(): ExecutorCapabilities {
        return { ...super.capabilities, network: "none" };
      }
    }
    const options = { isolation: "os-sandbox", network: "open" } as const;
    for (const [base, message] of [
      [() => new LocalCommandLineCodeExecutor(options), /template base does not restrict its network/],
      [() => new Untrue(options), /is not cut off from the network: it reaches tcp 127\.0\.0\.1/],
    ] as const) {
      await using server = await startServer({ templates: { base } });
      const executor = executorOn(server, { network: "none" });
      await expect(executor.start()).rejects.toThrow(message);
      expect(await sandboxesOf(server)).toEqual([]);
    }
  });

  it("refuses a key and a variable for it", () => {
    expect(() => new E2BCodeExecutor({ apiKey, apiKeyVariable: "KEY" })).toThrow(/cannot be combined with `apiKey`/);
  });
});

describe("E2BCodeExecutor in containers", needs("docker"), () => {
  it("runs blocks below the home directory, and moves files of any bytes", { timeout }, async () => {
    await using server = await startServer({
      templates: {
        base: () =>
          new DockerCommandLineCodeExecutor({
            image: "fenced-test:python",
            workspacePath: "/home/user",
            network: "none",
          }),
      },
    });
    const executor = executorOn(server, { network: "none" });
    const content = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7) % 256));
    await executor.files.write("sub/bytes.bin", content);
    const code = "import os; print(os.getcwd(), os.path.getsize('sub/bytes.bin'))";
    const result = await executor.executeCodeBlocks([{ language: "python", code }]);
    expect(result.output).toBe("/home/user/workspace 300000\n");
    expect(Buffer.from(await executor.files.read("sub/bytes.bin")).equals(content)).toBe(true);
    expect(executor.capabilities).toMatchObject({ isolation: "remote", network: "none", processes: true });
  });
});
