import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import {
  connectExecutor,
  type ConnectExecutorOptions,
  ExecutorStoppedError,
  hostFunction,
  type SessionHandle,
} from "@fenced/core";
import { needs, nightly, testKubeconfig } from "@fenced/test-support";
import { cutUntil, numberLines, printNumbers } from "@fenced/test-support/cut-until";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { KubernetesCommandLineCodeExecutor, KubernetesExecutorOptions } from "../src/index.ts";
import {
  ask,
  createExecutor,
  deletePod,
  evictPod,
  image,
  jobsWith,
  namespace,
  phaseOf,
  podsWith,
} from "./support/cluster.ts";
import { FaultProxy } from "./support/fault-proxy.ts";
import { hostCommand } from "./support/host-command.ts";
import { KubeconfigFiles, kubeconfigOf, testCluster } from "./support/kubeconfig-files.ts";
import { PolicyEnforcer } from "./support/policy-enforcer.ts";
import { TestNamespace } from "./support/test-namespace.ts";

const keepAliveMs = 120_000;
/** Much longer than necessary, for machines that are busy with other things. */
const goneMs = 120_000;
const python = (code: string) => [{ language: "python", code }];
const bash = (code: string) => [{ language: "bash", code }];

function create(options: KubernetesExecutorOptions = {}): KubernetesCommandLineCodeExecutor {
  return createExecutor({ keepAliveMs, maxOutputBytes: 16_777_216, ...options });
}

function handleOf({ handle }: KubernetesCommandLineCodeExecutor): SessionHandle {
  if (!handle) throw new Error("There is no handle.");
  return handle;
}

/** Something that a handle says about its session. */
function textIn({ session }: SessionHandle, name: string): string {
  return z.string().parse(session[name]);
}

function connect(handle: SessionHandle, options: ConnectExecutorOptions = {}) {
  return connectExecutor(handle, { ...options, importModule: () => import("../src/index.ts") });
}

/** A kubeconfig whose connections go through a proxy that can break them; for `await using`. */
class Proxied implements AsyncDisposable {
  readonly proxy: FaultProxy;
  readonly kubeconfig: string;
  readonly #files: KubeconfigFiles;

  private constructor(proxy: FaultProxy, files: KubeconfigFiles, kubeconfig: string) {
    this.proxy = proxy;
    this.#files = files;
    this.kubeconfig = kubeconfig;
  }

  static async start(): Promise<Proxied> {
    const proxy = await FaultProxy.start();
    const files = await KubeconfigFiles.make();
    const kubeconfig = await files.write("proxied", kubeconfigOf(testCluster({ "proxy-url": proxy.url })));
    return new Proxied(proxy, files, kubeconfig);
  }

  /** Breaks the connections again and again until something has settled; returns how often. */
  cutUntil(settled: Promise<unknown>): Promise<number> {
    let before = 0;
    const cut = (): number => {
      before = this.proxy.connections;
      this.proxy.cut();
      this.proxy.restore();
      return 1;
    };
    return cutUntil(settled, { cut, isBack: () => this.proxy.connections !== before }, 600);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.proxy[Symbol.asyncDispose]();
    await this.#files[Symbol.asyncDispose]();
  }
}

describe("a session in a pod whose connections break", { ...needs("kubernetes"), timeout: 240_000 }, () => {
  it("prints each byte once and in order", async () => {
    await using proxied = await Proxied.start();
    await using executor = create({ stateful: true, kubeconfig: proxied.kubeconfig });
    await executor.start();
    // The slower the machine, the fewer cuts while one block prints.
    for (let cuts = 0; cuts <= 3;) {
      const running = executor.executeCodeBlocks(python(printNumbers(30_000)));
      cuts += await proxied.cutUntil(running);
      const result = await running;
      expect(result.output).toBe(numberLines(30_000));
      expect(result.stateLost).toBe(false);
    }
  });

  it("does so for 200 cuts", { ...nightly, timeout: 900_000 }, async () => {
    await using proxied = await Proxied.start();
    await using executor = create({ kubeconfig: proxied.kubeconfig });
    await executor.start();
    for (let cuts = 0; cuts < 200;) {
      const running = executor.executeCodeBlocks(python(printNumbers(100_000)));
      cuts += await proxied.cutUntil(running);
      expect((await running).output).toBe(numberLines(100_000));
    }
  });

  it("carries files, input and calls of host functions", async () => {
    const add = hostFunction({
      name: "add",
      description: "Adds.",
      input: z.object({ one: z.number(), other: z.number() }),
      execute: async ({ one, other }) => {
        await sleep(20);
        return one + other;
      },
    });
    await using proxied = await Proxied.start();
    await using executor = create({ functions: [add], kubeconfig: proxied.kubeconfig });
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
    for (let cuts = 0; cuts <= 1;) {
      const running = work();
      cuts += await proxied.cutUntil(running);
      expect(await running).toEqual([true, "1000000\n", "45\n"]);
    }
  });

  it("goes on when the API server cannot be reached for a while, or falls silent", async () => {
    await using proxied = await Proxied.start();
    const { proxy, kubeconfig } = proxied;
    await using executor = create({ kubeconfig });
    await executor.start();
    const pod = executor.podName;
    const running = executor.executeCodeBlocks(bash("for i in 1 2 3 4 5 6; do echo $i; sleep 1; done"));
    await sleep(1000);
    proxy.cut();
    await sleep(3000);
    proxy.restore();
    expect((await running).output).toBe("1\n2\n3\n4\n5\n6\n");
    const silent = executor.executeCodeBlocks(bash("echo before; sleep 3; echo after"));
    await sleep(1000);
    proxy.freeze();
    proxy.restore();
    expect((await silent).output).toBe("before\nafter\n");
    expect(executor.podName).toBe(pod);
  });

  it("is not ended by a program that was cut off, and stops before it has heard of another one", async () => {
    await using proxied = await Proxied.start();
    const first = create({ kubeconfig: proxied.kubeconfig });
    await first.executeCodeBlocks(bash("echo kept > kept.txt"));
    const handle = structuredClone(handleOf(first));
    proxied.proxy.cut();
    handle.component.config["kubeconfig"] = testKubeconfig;
    await using second = await connect(handle, { takeOver: true });
    await first.stop();
    proxied.proxy.restore();
    expect((await second.executeCodeBlocks(bash("cat kept.txt"))).output).toBe("kept\n");
    expect(await jobsWith(`fenced.dev/executor=${textIn(handle, "id")}`)).toHaveLength(1);
  });
});

describe("a session in a pod", { ...needs("kubernetes"), timeout: 240_000 }, () => {
  it("ends by itself with pod and Job when its program was killed, and nobody has to sweep", async () => {
    // Where no other program sweeps.
    await using space = await TestNamespace.make();
    const [program, ...words] = hostCommand("kept-host.ts", image, testKubeconfig, space.name, "2000");
    const host = spawn(program, words, { stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    host.stdout.on("data", (bytes: Buffer) => (said += bytes.toString()));
    await expect.poll(() => said, { timeout: 60_000 }).toMatch(/ ran\n/);
    expect(await space.pods()).toHaveLength(1);
    host.kill("SIGKILL");
    await once(host, "close");
    await expect.poll(() => space.pods(), { timeout: goneMs }).toEqual([]);
    await expect.poll(() => space.jobs(), { timeout: goneMs }).toEqual([]);
  });

  it.for([
    ["deleted", deletePod],
    ["drained from its node", evictPod],
  ] as const)("that was %s while nobody was connected has ended, and an error says so", async ([, remove]) => {
    const executor = create({ labels: { "fenced-test": "lost" } });
    await executor.start();
    const handle = handleOf(executor);
    const pod = executor.podName ?? "";
    await executor.detach();
    await remove(pod);
    await expect.poll(() => phaseOf(pod), { timeout: goneMs }).toBe("gone");
    await expect(connect(handle)).rejects.toThrow(`The session in the pod ${pod} has ended: the pod is gone`);
    // Older clusters create another pod, which ends by itself because nothing connects to it.
    await ask(
      "DELETE",
      `/apis/batch/v1/namespaces/${namespace}/jobs/${textIn(handle, "request")}?propagationPolicy=Background`,
    );
  });

  it("that loses its pod says why, and the next call has another one", async () => {
    const reasons: string[] = [];
    const label = randomUUID();
    await using executor = create({
      labels: { "fenced-test": label },
      onSessionLost: (reason) => reasons.push(reason),
    });
    await executor.start();
    const handle = handleOf(executor);
    await deletePod(executor.podName ?? "");
    await expect
      .poll(() => reasons, { timeout: 60_000 })
      .toEqual([expect.stringMatching(/is lost: something deleted it/)]);
    const after = await executor.executeCodeBlocks(bash("echo again"));
    expect([after.output, after.stateLost]).toEqual(["again\n", true]);
    expect(handleOf(executor).session["pod"]).not.toBe(handle.session["pod"]);
    expect(handleOf(executor).session["key"]).not.toBe(handle.session["key"]);
    await expect.poll(() => podsWith(`fenced-test=${label}`), { timeout: 60_000 }).toHaveLength(1);
    expect(await jobsWith(`fenced-test=${label}`)).toHaveLength(1);
  });

  it("that another pod has taken the name of is over", async () => {
    await using executor = create();
    await executor.start();
    const handle = structuredClone(handleOf(executor));
    handle.session["uid"] = randomUUID();
    await expect(connect(handle, { takeOver: true })).rejects.toThrow(/has ended: something deleted it/);
  });

  it("shows its key nowhere in the cluster", async () => {
    await using executor = create();
    await executor.executeCodeBlocks(bash("true"));
    const handle = handleOf(executor);
    const key = textIn(handle, "key");
    const pod = executor.podName ?? "";
    const pods = `/api/v1/namespaces/${namespace}/pods/${pod}`;
    const seen = [
      await ask("GET", pods),
      await ask("GET", `/apis/batch/v1/namespaces/${namespace}/jobs/${textIn(handle, "request")}`),
      await ask("GET", `/api/v1/namespaces/${namespace}/events?limit=500`),
    ];
    const text = JSON.stringify(seen);
    expect(text).toContain(pod);
    for (const form of [key, Buffer.from(key, "base64").toString("hex")]) expect(text).not.toContain(form);
  });

  it("keeps its network policy, and another program's proxy serves it", needs("root"), async () => {
    await using _ = new PolicyEnforcer();
    const executor = create({ network: { allow: ["good.example"] } });
    const refused = {
      output: expect.stringContaining("evil.example is not in this executor's network policy"),
      network: [{ allowed: false, host: "evil.example", port: 443 }],
    };
    const fetching = python('import urllib.request\nurllib.request.urlopen("https://evil.example/")');
    const direct = python(`import os, socket
socket.setdefaulttimeout(2)
print(socket.socket().connect_ex((os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"]))) != 0)`);
    expect(await executor.executeCodeBlocks(fetching)).toMatchObject(refused);
    const handle = handleOf(executor);
    await executor.detach();
    const seen: string[] = [];
    const network = {
      allow: ["good.example"],
      onRequest: ({ host }: { readonly host: string }) => void seen.push(host),
    };
    await using again = await connect(handle, { network });
    expect(await again.executeCodeBlocks(fetching)).toMatchObject(refused);
    expect((await again.executeCodeBlocks(direct)).output).toBe("True\n");
    expect(seen).toEqual(["evil.example"]);
  });
});

/** Programs that attack the session that they are in. */
const attacks: readonly (readonly [what: string, code: string])[] = [
  ["signals to its first process", "import os, signal\nfor each in (2, 14, 15, 1, 9, 19): os.kill(1, each)"],
  [
    "the processes that carry its connections",
    "import os\nfor pid in os.listdir('/proc'):\n    try:\n        if pid.isdigit() and open(f'/proc/{pid}/comm').read() == 'cat\\n': os.kill(int(pid), 9)\n    except OSError: pass",
  ],
  [
    "its sockets",
    `import os, socket, struct
for line in open("/proc/net/unix"):
    if "@fenced" not in line: continue
    for _ in range(40):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(1)
        try:
            connection.connect("\\0" + line.split("@", 1)[1].strip())
            reading, writing = os.pipe()
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("=2i", reading, writing))]
            connection.sendmsg([b"."], rights)
            os.write(writing, b"FENCED-LINK1\\n" + os.urandom(200))
        except OSError: pass`,
  ],
];

describe("a session in a pod whose code attacks it", { ...needs("kubernetes"), timeout: 240_000 }, () => {
  it.for(attacks)("goes on after an attack on %s", async ([, code]) => {
    await using executor = create({ stateful: true });
    await executor.executeCodeBlocks(python("kept = 41"));
    const pod = executor.podName;
    expect((await executor.executeCodeBlocks(python(`${code}\nprint("attacked")`))).output).toBe("attacked\n");
    expect((await executor.executeCodeBlocks(python("kept + 1"))).output).toBe("42\n");
    const handle = handleOf(executor);
    await executor.detach();
    await using again = await connect(handle);
    expect((await again.executeCodeBlocks(python("kept + 2"))).output).toBe("43\n");
    expect(handle.session["pod"]).toBe(pod);
  });

  it("ends in time although its code has stopped everything that it can", async () => {
    const executor = create({ keepAliveMs: 1000 });
    await executor.start();
    const pod = executor.podName ?? "";
    const stopping = executor.executeCodeBlocks(bash("kill -STOP 1; kill -9 1; kill -STOP -1"));
    stopping.catch(() => {});
    await sleep(1500);
    await executor.detach();
    await expect(stopping).rejects.toThrow(ExecutorStoppedError);
    await expect.poll(() => phaseOf(pod), { timeout: goneMs }).toBe("gone");
  });

  it("survives a block that uses up its memory", async () => {
    await using executor = create({ resources: { limits: { memory: "96Mi" } } });
    const code = "kept = [bytes([1]) * 1_000_000 for _ in range(300)]";
    expect(await executor.executeCodeBlocks(python(code))).toMatchObject({ exitCode: 137, stateLost: false });
    expect((await executor.executeCodeBlocks(bash("echo again"))).output).toBe("again\n");
  });
});
