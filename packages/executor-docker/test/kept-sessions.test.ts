import { setTimeout as sleep } from "node:timers/promises";
import { connectExecutor, ExecutorStoppedError, hostFunction, type NetworkDecision } from "@fenced/core";
import { needs, nightly } from "@fenced/test-support";
import { cutUntil, numberLines, printNumbers } from "@fenced/test-support/cut-until";
import { type DaemonRelay, relayDaemon } from "@fenced/test-support/daemon-relay";
import { playTlsHost } from "@fenced/test-support/loopback-hosts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { DockerCommandLineCodeExecutor, type DockerExecutorOptions } from "../src/index.ts";
import { docker } from "./support/docker-cli.ts";
import { nodeImage, pythonImage } from "./support/images.ts";
import { policy } from "./support/network-policy.ts";
import { startPrivateDaemon } from "./support/private-daemon.ts";

const keepAliveMs = 120_000;
const python = (code: string) => [{ language: "python", code }];
const bash = (code: string) => [{ language: "bash", code }];

describe("a session that outlives its program", { ...needs("docker"), timeout: 120_000 }, () => {
  let relay: DaemonRelay;
  beforeEach(async () => {
    relay = await relayDaemon("/var/run/docker.sock");
  });
  afterEach(() => relay[Symbol.asyncDispose]());

  function create(options: DockerExecutorOptions = {}): DockerCommandLineCodeExecutor {
    return new DockerCommandLineCodeExecutor({
      image: pythonImage,
      docker: relay.address,
      network: "none",
      keepAliveMs,
      maxOutputBytes: 16_777_216,
      ...options,
    });
  }

  const cut = (settled: Promise<unknown>): Promise<number> =>
    cutUntil(settled, { cut: () => relay.cut(), isBack: () => relay.streams > 0 });

  it("prints each byte once and in order while its connections break", async () => {
    await using executor = create({ stateful: true });
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

  it("does so for 200 cuts", { ...nightly, timeout: 600_000 }, async () => {
    await using executor = create();
    await executor.start();
    for (let cuts = 0; cuts < 200;) {
      const running = executor.executeCodeBlocks(python(printNumbers(100_000)));
      cuts += await cut(running);
      const result = await running;
      expect(result.output).toBe(numberLines(100_000));
    }
  });

  it("carries files, input and calls of host functions while its connections break", async () => {
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
    const content = Buffer.alloc(1_000_000, "0123456789abcdef");
    const work = async () => {
      await executor.files.write("large.bin", content);
      const back = await executor.files.read("large.bin");
      const stdin = "x".repeat(1_000_000);
      const read = await executor.executeCodeBlocks(python("import sys; print(len(sys.stdin.read()))"), { stdin });
      const calls = "from functions import add\nn = 0\nfor i in range(10): n = add(n, i)\nprint(n)";
      const called = await executor.executeCodeBlocks(python(calls));
      return [content.equals(back), read.output, called.output];
    };
    for (let cuts = 0; cuts <= 2;) {
      const running = work();
      cuts += await cut(running);
      expect(await running).toEqual([true, "1000000\n", "45\n"]);
    }
  });

  it("ends a block that exceeds its time limit while there is no connection, and goes on", async () => {
    await using executor = create();
    await executor.executeCodeBlocks(bash("echo kept > kept.txt"));
    const running = executor.executeCodeBlocks(bash("echo before; sleep 8; sleep 1000"), { timeoutMs: 5000 });
    await sleep(1000);
    relay.refuse(true);
    const result = await running;
    relay.refuse(false);
    expect([result.timedOut, result.output.startsWith("before\n")]).toEqual([true, true]);
    const after = await executor.executeCodeBlocks(bash("cat kept.txt; grep -sl ^sleep.1000 /proc/[0-9]*/cmdline"));
    expect([after.output, after.stateLost]).toEqual(["kept\n", false]);
  });

  it("is not ended by a program that was cut off, and stops before it has heard of another one", async () => {
    const first = create();
    await first.executeCodeBlocks(bash("echo kept > kept.txt"));
    const { handle } = first;
    if (!handle) throw new Error("no handle");
    relay.refuse(true);
    const direct = { ...handle, component: { ...handle.component, config: { ...handle.component.config } } };
    direct.component.config["docker"] = "unix:///var/run/docker.sock";
    await using second = await connectExecutor(direct, { takeOver: true });
    await first.stop();
    relay.refuse(false);
    expect((await second.executeCodeBlocks(bash("cat kept.txt"))).output).toBe("kept\n");
  });

  it("is told from one whose container is gone", async () => {
    const reasons: string[] = [];
    await using executor = create({ onSessionLost: (reason) => reasons.push(reason) });
    await executor.executeCodeBlocks(bash("true"));
    const { handle } = executor;
    await docker("rm", "--force", "--volumes", executor.containerName);
    while (reasons.length === 0) await sleep(20);
    expect(reasons[0]).toMatch(/lost: it ended/);
    const after = await executor.executeCodeBlocks(bash("echo again"));
    expect([after.output, after.stateLost]).toEqual(["again\n", true]);
    if (!handle) throw new Error("no handle");
    await expect(connectExecutor(handle)).rejects.toThrow(/has ended: its container was removed/);
    expect(executor.handle?.session["container"]).not.toBe(handle.session["container"]);
  });

  it("ends in time although its code has stopped everything that it can", async () => {
    const executor = create({ keepAliveMs: 1000 });
    await executor.start();
    const name = executor.containerName;
    const stopping = executor.executeCodeBlocks(bash("kill -STOP 1; kill -9 1; kill -STOP -1"));
    stopping.catch(() => {});
    await sleep(1500);
    await executor.detach();
    await expect(stopping).rejects.toThrow(ExecutorStoppedError);
    while ((await docker("ps", "--all", "--quiet", "--filter", `name=${name}`)) !== "") await sleep(50);
  });

  it("is refused with an image without Python, and with containers that do not end by themselves", async () => {
    await using executor = create({ image: nodeImage });
    await expect(executor.start()).rejects.toThrow(/Python/);
    expect(() => create({ stopContainer: false })).toThrow(/keepAliveMs.*stopContainer/s);
    expect(() => create({ reuse: true, containerName: "x" })).toThrow(/keepAliveMs.*reuse/s);
  });
});

describe("a session with a network policy of functions", { ...needs("docker", "openssl"), timeout: 120_000 }, () => {
  const options = { image: pythonImage, keepAliveMs, timeoutMs: Infinity } as const;

  it("has a handle without them, and gets those of the program that connects", async () => {
    const { port, ca } = await playTlsHost("api.example", (request, response) => {
      response.end(request.headers.authorization ?? "nobody");
    });
    const decisions: string[] = [];
    const policyOf = (name: string) => {
      const credential = { host: `api.example:${port}`, header: "authorization", value: () => name, ca };
      const onRequest = ({ host }: NetworkDecision): void => void decisions.push(`${name} ${host}`);
      return { ...policy({ allow: [`api.example:${port}`], credentials: [credential] }), onRequest };
    };
    const request = python(
      `import urllib.request as web\nprint(web.urlopen("https://api.example:${port}").read().decode())`,
    );
    const first = new DockerCommandLineCodeExecutor({ ...options, network: policyOf("first") });
    expect((await first.executeCodeBlocks(request)).output).toBe("first\n");
    const { handle } = first;
    if (!handle) throw new Error("no handle");
    expect(handle.component.config["network"]).toEqual({ allow: [`api.example:${port}`, "127.0.0.1"] });
    await first.detach();
    const saved = structuredClone(handle);
    await using second = await connectExecutor(saved, { network: policyOf("second") });
    expect((await second.executeCodeBlocks(request)).output).toBe("second\n");
    expect(decisions).toEqual(["first api.example", "second api.example"]);
  });

  it("lets nothing out if the list was a function that was not given again", async () => {
    const first = new DockerCommandLineCodeExecutor({ ...options, network: { allow: () => ["api.example"] } });
    await first.start();
    const { handle } = first;
    if (!handle) throw new Error("no handle");
    await first.detach();
    await using second = await connectExecutor(handle);
    const { network } = await second.executeCodeBlocks(
      python('import urllib.request as web\nweb.urlopen("http://api.example")'),
    );
    expect(network).toMatchObject([{ host: "api.example", allowed: false }]);
  });

  it("cannot get a list if its container has a network", async () => {
    await using first = new DockerCommandLineCodeExecutor({ ...options, network: "open" });
    await first.start();
    const { handle } = first;
    if (!handle) throw new Error("no handle");
    const connecting = connectExecutor(handle, { network: { allow: [] }, takeOver: true });
    await expect(connecting).rejects.toThrow(/`network` cannot limit this session.*Leave `network` out/);
  });
});

describe("a session whose daemon restarts", { ...needs("docker", "root"), ...nightly, timeout: 240_000 }, () => {
  it("is lost with its container, and the next call has another one", async () => {
    await using daemon = await startPrivateDaemon();
    const reasons: string[] = [];
    await using executor = new DockerCommandLineCodeExecutor({
      image: pythonImage,
      docker: daemon.address,
      network: "none",
      stateful: true,
      keepAliveMs,
      onSessionLost: (reason) => reasons.push(reason),
    });
    await executor.executeCodeBlocks(python("kept = 41"));
    const running = executor.executeCodeBlocks(python(printNumbers(20_000)));
    running.catch(() => {});
    daemon.signal("SIGTERM");
    await daemon.ended();
    await daemon.start();
    await running.catch(() => {});
    while (reasons.length === 0) await sleep(50);
    const after = await executor.executeCodeBlocks(python("print('kept' in globals())"));
    expect(after.output).toBe("False\n");
  });
});
