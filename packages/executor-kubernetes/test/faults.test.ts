import { randomUUID } from "node:crypto";
import { BackendUnavailableError, InvalidInputError } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import type { KubernetesCommandLineCodeExecutor, KubernetesExecutorOptions } from "../src/index.ts";
import { createExecutor, deletePod, evictPod, podsWith, printed } from "./support/cluster.ts";
import { FaultProxy } from "./support/fault-proxy.ts";
import { KubeconfigFiles, kubeconfigOf, testCluster } from "./support/kubeconfig-files.ts";

/** The error of an executor that cannot start, and leaves no pod behind. */
async function startFailure(options: KubernetesExecutorOptions): Promise<Error> {
  const label = randomUUID();
  const executor = createExecutor({ ...options, labels: { "fenced-test": label } });
  const error: unknown = await executor.start().catch((thrown: unknown) => thrown);
  expect(await podsWith(`fenced-test=${label}`)).toEqual([]);
  if (error instanceof Error) return error;
  throw new Error("it started");
}

describe.concurrent("a pod that cannot start", needs("kubernetes"), () => {
  const cases: readonly [what: string, options: KubernetesExecutorOptions, said: RegExp][] = [
    ["the image cannot be pulled", { image: "127.0.0.1:1/none:1" }, /image could not be pulled.*127\.0\.0\.1:1/s],
    ["the image is missing", { image: "none:1", imagePullPolicy: "Never" }, /image could not be pulled.*Never/s],
    [
      "no node has room",
      { resources: { requests: { cpu: "1000" } } },
      /no node has room.*Insufficient cpu.*waitForNodes/s,
    ],
    [
      "no node becomes available in time",
      { resources: { requests: { cpu: "1000" } }, waitForNodes: true, startTimeoutMs: 6000 },
      /did not run within 6 s.*Insufficient cpu/s,
    ],
    ["the image has no Python", { image: "fenced-test:node" }, /Python 3\.8/],
    ["the namespace does not exist", { namespace: "fenced-none" }, /no namespace fenced-none|namespace.*fenced-none/],
  ];
  it.for(cases)("causes an error that says so: %s", async ([, options, said]) => {
    const error = await startFailure(options);
    expect(BackendUnavailableError.isInstance(error)).toBe(true);
    expect(error.message).toMatch(said);
  });

  it("causes an error in the server's words if a setting is invalid", async () => {
    const error = await startFailure({ resources: { limits: { memory: "much" } } });
    expect(InvalidInputError.isInstance(error)).toBe(true);
    expect(error.message).toMatch(/quantit/);
  });
});

/** Streams a block until it fails or ends; returns its output and the error. */
async function followed(executor: KubernetesCommandLineCodeExecutor, code: string, atFirst: () => unknown) {
  let output = "";
  try {
    for await (const event of executor.streamCodeBlocks([{ language: "python", code }])) {
      if (event.type !== "stdout") continue;
      output += event.text;
      // A line may arrive in pieces.
      if (output === "begun\n") await atFirst();
    }
    return { output, message: "it ended" };
  } catch (error) {
    return { output, message: String(error) };
  }
}

const waiting = "print('begun')\nimport time\ntime.sleep(600)";

describe.concurrent("a running pod", needs("kubernetes"), () => {
  it.for([
    ["at once", deletePod],
    ["by a drain of its node", evictPod],
  ] as const)("that is deleted %s is reported and replaced", { timeout: 270_000 }, async ([, remove]) => {
    // On a busy machine, the node takes more than a minute to end it.
    await using executor = createExecutor({ timeoutMs: 240_000 });
    await executor.start();
    const { output, message } = await followed(executor, waiting, () => remove(executor.podName ?? ""));
    expect(output).toBe("begun\n");
    expect(message).toMatch(/deleted/);
    const next = await executor.executeCodeBlocks([{ language: "python", code: "print('next')" }]);
    expect([next.output, next.stateLost]).toEqual(["next\n", true]);
  });

  it("that is evicted for its disk usage is reported", async () => {
    // The node looks at disks only from time to time: every ten seconds, and at volumes once a minute, by default.
    const resources = { limits: { "ephemeral-storage": "5Mi" } };
    await using executor = createExecutor({ timeoutMs: 240_000, resources });
    const code = `open("/tmp/large", "wb").write(bytes(20_000_000))\n${waiting}`;
    const { output, message } = await followed(executor, code, () => {});
    expect(output).toBe("begun\n");
    expect(message).toMatch(/evicted.*ephemeral/s);
  }, 270_000);

  it("survives a block that uses up its memory, and the block's result says so", async () => {
    await using executor = createExecutor({ resources: { limits: { memory: "96Mi" } } });
    const result = await executor.executeCodeBlocks([
      { language: "python", code: "print('begun')\nkept = [bytes([1]) * 1_000_000 for _ in range(300)]" },
    ]);
    expect(result.exitCode).toBe(137);
    expect(result.output).toMatch(/begun[^]*out of memory \(limit: 96Mi\)/);
    expect(await printed(executor, "print('next')")).toBe("next");
  });
});

describe("a connection that is lost", needs("kubernetes"), () => {
  it("fails the block, keeps what it printed, and the next call finds the server that comes back", async () => {
    await using proxy = await FaultProxy.start();
    await using files = await KubeconfigFiles.make();
    const kubeconfig = await files.write("proxied", kubeconfigOf(testCluster({ "proxy-url": proxy.url })));
    const label = randomUUID();
    await using executor = createExecutor({ kubeconfig, labels: { "fenced-test": label } });
    await executor.start();
    const first = executor.podName ?? "";
    const { output, message } = await followed(executor, waiting, () => proxy.cut());
    expect(output).toBe("begun\n");
    expect(message).toMatch(/is lost/);
    const next = executor.executeCodeBlocks([{ language: "python", code: "print('next')" }]);
    // The call has begun to look for the server, which is not there yet.
    setTimeout(() => proxy.restore(), 1000);
    expect(await next).toMatchObject({ output: "next\n", stateLost: true });
    expect(executor.podName).not.toBe(first);
    await expect.poll(() => podsWith(`fenced-test=${label}`)).toHaveLength(1);
  });

  it("because it only falls silent fails the block, too", async () => {
    await using proxy = await FaultProxy.start();
    await using files = await KubeconfigFiles.make();
    const kubeconfig = await files.write("proxied", kubeconfigOf(testCluster({ "proxy-url": proxy.url })));
    await using executor = createExecutor({ kubeconfig });
    const { output, message } = await followed(executor, waiting, () => proxy.freeze());
    proxy.restore();
    expect(output).toBe("begun\n");
    expect(message).toMatch(/has not answered for 20 s/);
    expect(await printed(executor, "print('next')")).toBe("next");
  }, 120_000);
});
