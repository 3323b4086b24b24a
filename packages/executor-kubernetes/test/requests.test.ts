import { setTimeout as sleep } from "node:timers/promises";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { KubernetesCommandLineCodeExecutor } from "../src/index.ts";
import { AgentSandbox, applyResources, makePool } from "./support/agent-sandbox.ts";
import { createExecutor, deletePod, printed } from "./support/cluster.ts";
import { CountingServer } from "./support/counting-server.ts";
import { KubeconfigFiles, kubeconfigOf, testCluster } from "./support/kubeconfig-files.ts";
import { PolicyEnforcer } from "./support/policy-enforcer.ts";
import { TestNamespace } from "./support/test-namespace.ts";

/** Requests in order; execs that come before the container runs count as one. */
function counted(requests: readonly string[]): readonly string[] {
  expect(requests.filter((each) => each === "create pods/exec").length).toBeLessThanOrEqual(5);
  return requests.filter((each, index) => each !== "create pods/exec" || each !== requests[index - 1]);
}

// docs/kubernetes-scale.md has these numbers.
describe("the API server", needs("kubernetes", "root"), () => {
  it("gets four requests for a session, whatever that does, plus up to four early execs; six with a network policy", async () => {
    await using server = await CountingServer.start();
    await using files = await KubeconfigFiles.make();
    const { user } = testCluster();
    const kubeconfig = await files.write("counted", kubeconfigOf({ cluster: { server: server.url }, user }));
    {
      // The first executor of a program also looks for what others have left behind.
      await using first = createExecutor({ kubeconfig });
      await first.start();
    }
    expect(server.requests.filter((request) => request === "list pods")).toHaveLength(1);

    server.requests.length = 0;
    const executor = createExecutor({ kubeconfig });
    await executor.start();
    for (let block = 0; block < 20; block++) expect(await printed(executor, `print(${block})`)).toBe(String(block));
    await executor.files.write("large", Buffer.alloc(1_000_000));
    expect(await executor.files.list()).toEqual([{ path: "large", size: 1_000_000 }]);
    await executor.restart();
    await executor.stop();
    expect(counted(server.requests)).toEqual(["create pods", "watch pods", "create pods/exec", "delete pods"]);

    server.requests.length = 0;
    {
      await using _ = new PolicyEnforcer();
      await using closed = createExecutor({ kubeconfig, network: "none" });
      await printed(closed, "print('closed')");
    }
    expect(counted(server.requests)).toEqual([
      "create pods",
      "watch pods",
      "create pods/exec",
      "create networkpolicies",
      "list networkpolicies",
      "delete pods",
    ]);
  });

  it("gets nine requests for a session with keepAliveMs, and two when its connection breaks", async () => {
    await using server = await CountingServer.start();
    await using files = await KubeconfigFiles.make();
    const { user } = testCluster();
    const kubeconfig = await files.write("counted", kubeconfigOf({ cluster: { server: server.url }, user }));
    const executor = createExecutor({ kubeconfig, keepAliveMs: 60_000 });
    expect(await printed(executor, "print('kept')")).toBe("kept");
    server.cut();
    expect(await printed(executor, "print('again')")).toBe("again");
    await executor.stop();
    const requests = counted(server.requests);
    // The first executor of a program in a namespace also looks for what others have left behind.
    const swept = requests.indexOf("list pods") < requests.indexOf("delete jobs") ? requests.indexOf("list pods") : -1;
    expect(requests.filter((_, index) => index !== swept)).toEqual([
      "create pods",
      "create jobs",
      "watch pods",
      "watch pods",
      "create pods/exec",
      "get pods",
      "create pods/exec",
      "delete jobs",
      "list pods",
      "delete pods",
      "list pods",
    ]);
  });

  it("is not flooded by a session whose connections break all the time", async () => {
    await using server = await CountingServer.start();
    await using files = await KubeconfigFiles.make();
    const { user } = testCluster();
    const kubeconfig = await files.write("counted", kubeconfigOf({ cluster: { server: server.url }, user }));
    await using executor = createExecutor({ kubeconfig, keepAliveMs: 60_000 });
    await executor.start();
    server.requests.length = 0;
    const end = performance.now() + 10_000;
    const execs = (): number => server.requests.filter((each) => each === "create pods/exec").length;
    let seen = -1;
    while (performance.now() < end) {
      await sleep(10);
      if (execs() === seen) continue;
      seen = execs();
      // Time to prove the key, so that the connection counts as one.
      await sleep(150);
      server.cut();
    }
    // Ten, and then one a second.
    expect(execs()).toBeLessThan(25);
    expect(await printed(executor, "print('again')")).toBe("again");
  }, 120_000);

  it("gets seven requests for a session on a claimed pod", async () => {
    await applyResources();
    await using space = await TestNamespace.make();
    await using _ = new AgentSandbox(space.name);
    await makePool(space.name);
    await using server = await CountingServer.start();
    await using files = await KubeconfigFiles.make();
    const { user } = testCluster();
    const kubeconfig = await files.write("counted", kubeconfigOf({ cluster: { server: server.url }, user }));
    const executor = new KubernetesCommandLineCodeExecutor({
      kubeconfig,
      namespace: space.name,
      warmPool: { name: "python" },
    });
    expect(await printed(executor, "print('claimed')")).toBe("claimed");
    await executor.stop();
    // The first executor of a program in a namespace also looks for what others have left behind.
    expect(counted(server.requests).filter((each) => each !== "list pods")).toEqual([
      "get sandboxwarmpools",
      "create sandboxclaims",
      "watch sandboxclaims",
      "get sandboxes",
      "watch pods",
      "create pods/exec",
      "delete sandboxclaims",
    ]);
  }, 120_000);

  it("gets the same requests again for a lost session, and one for the reason", async () => {
    await using server = await CountingServer.start();
    await using files = await KubeconfigFiles.make();
    const { user } = testCluster();
    const kubeconfig = await files.write("counted", kubeconfigOf({ cluster: { server: server.url }, user }));
    let reason = "";
    const executor = createExecutor({ kubeconfig, onSessionLost: (said) => void (reason = said) });
    await executor.start();
    server.requests.length = 0;
    await deletePod(executor.podName ?? "");
    await expect.poll(() => reason, { timeout: 60_000 }).toMatch(/deleted/);
    expect(await printed(executor, "print('next')")).toBe("next");
    await executor.stop();
    expect(counted(server.requests).filter((each) => each !== "list pods")).toEqual([
      "get pods",
      "delete pods",
      "create pods",
      "watch pods",
      "create pods/exec",
      "delete pods",
    ]);
  }, 120_000);
});
