import { execFile } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { needs } from "@fenced/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import type { KubernetesCommandLineCodeExecutor } from "../src/index.ts";
import { createExecutor, podsWith } from "./support/cluster.ts";

const script = join(import.meta.dirname, "../../../scripts/ci/kubernetes.sh");
const execute = promisify(execFile);

/** Kills or revives a part of the cluster that `scripts/ci/kubernetes.sh` started. */
async function part(action: "kill" | "revive", name: "kube-apiserver" | "kubelet"): Promise<void> {
  await execute(script, [action, name]);
}

/** Streams a block, and calls `atFirst` after its first output; returns the output and the error once it has ended. */
async function followed(executor: KubernetesCommandLineCodeExecutor, atFirst: () => Promise<void>) {
  const code = "print('begun', flush=True)\nimport time\ntime.sleep(600)";
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

const numbers = 400;
const counting = {
  language: "python",
  code: `import time\nfor i in range(${numbers}):\n    print(i, flush=True)\n    time.sleep(0.05)`,
};
const counted = Array.from({ length: numbers }, (_, index) => `${index}\n`).join("");

const next = { language: "python", code: "print('next')" };

// All other tests on the cluster would fail meanwhile, so `.ci/full` runs this file by itself.
const isAlone = process.env["FENCED_KUBERNETES_OUTAGES"] === "1";
describe.skipIf(!isAlone)("a cluster", { ...needs("kubernetes", "root"), timeout: 300_000 }, () => {
  it("whose API server is killed fails the block, and a later call finds the one that comes back", async () => {
    const label = "fenced-test-outage";
    await using executor = createExecutor({ labels: { [label]: "server" }, timeoutMs: 200_000 });
    await executor.start();
    const first = executor.podName;
    onTestFinished(() => part("revive", "kube-apiserver").catch(() => {}));
    const { output, message } = await followed(executor, () => part("kill", "kube-apiserver"));
    expect(output).toBe("begun\n");
    expect(message).toMatch(/is lost/);
    await expect(executor.executeCodeBlocks([next])).rejects.toThrow(/could not be reached.*kubectl get pods/s);
    await part("revive", "kube-apiserver");
    expect(await executor.executeCodeBlocks([next])).toMatchObject({ output: "next\n", stateLost: true });
    expect(executor.podName).not.toBe(first);
    await executor.stop();
    await expect.poll(() => podsWith(`${label}=server`), { timeout: 60_000 }).toEqual([]);
  });

  it.for(["kube-apiserver", "kubelet"] as const)(
    "whose %s is killed and comes back costs a session with keepAliveMs nothing",
    async (name) => {
      await using executor = createExecutor({ stateful: true, keepAliveMs: 200_000, timeoutMs: 200_000 });
      await executor.executeCodeBlocks([{ language: "python", code: "kept = 41" }]);
      const first = executor.podName;
      onTestFinished(() => part("revive", name).catch(() => {}));
      const running = executor.executeCodeBlocks([counting]);
      await sleep(2000);
      await part("kill", name);
      await sleep(5000);
      await part("revive", name);
      expect(await running).toMatchObject({ output: counted, stateLost: false });
      const after = await executor.executeCodeBlocks([{ language: "python", code: "kept + 1" }]);
      expect([after.output, executor.podName]).toEqual(["42\n", first]);
    },
  );

  it("whose node is lost fails the block, and reports what the next one waits for", async () => {
    const label = "fenced-test-outage";
    await using executor = createExecutor({ labels: { [label]: "node" }, startTimeoutMs: 5000, timeoutMs: 200_000 });
    await executor.start();
    onTestFinished(() => part("revive", "kubelet").catch(() => {}));
    const { output, message } = await followed(executor, () => part("kill", "kubelet"));
    expect(output).toBe("begun\n");
    expect(message).toMatch(/is lost/);
    await expect(executor.executeCodeBlocks([next])).rejects.toThrow(
      /did not run within 5 s.*its node|no node has room/s,
    );
    await part("revive", "kubelet");
    await expect
      .poll(() => executor.executeCodeBlocks([next]).then(({ output: said }) => said, String), { timeout: 120_000 })
      .toBe("next\n");
    await executor.stop();
    await expect.poll(() => podsWith(`${label}=node`), { timeout: 60_000 }).toEqual([]);
  });
});
