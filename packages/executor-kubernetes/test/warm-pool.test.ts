import { BackendUnavailableError, connectExecutor } from "@fenced/core";
import { needs, testKubeconfig } from "@fenced/test-support";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { type KubernetesExecutorOptions, KubernetesCommandLineCodeExecutor, sandboxTemplate } from "../src/index.ts";
import { AgentSandbox, applyResources, makePool, placeOf } from "./support/agent-sandbox.ts";
import { ask, image, printed } from "./support/cluster.ts";
import { PolicyEnforcer } from "./support/policy-enforcer.ts";
import { TestNamespace } from "./support/test-namespace.ts";

const list = z.object({ items: z.array(z.looseObject({ metadata: z.looseObject({ name: z.string() }) })) });

async function namesOf(place: string): Promise<string[]> {
  return list.parse(await ask("GET", place)).items.map(({ metadata }) => metadata.name);
}

function claiming(namespace: string, options: KubernetesExecutorOptions = {}): KubernetesCommandLineCodeExecutor {
  return new KubernetesCommandLineCodeExecutor({
    kubeconfig: testKubeconfig,
    namespace,
    warmPool: { name: "python" },
    ...options,
  });
}

async function failure(executor: KubernetesCommandLineCodeExecutor): Promise<string> {
  const error: unknown = await executor.start().catch((thrown: unknown) => thrown);
  expect(BackendUnavailableError.isInstance(error)).toBe(true);
  return String(error);
}

describe("a warm pool of agent-sandbox", { ...needs("kubernetes"), timeout: 120_000 }, () => {
  beforeAll(applyResources);

  it("gives a session one of its pods, and then replaces it", async () => {
    await using space = await TestNamespace.make();
    await using _ = new AgentSandbox(space.name);
    await makePool(space.name);
    await expect.poll(() => space.pods(), { timeout: 60_000 }).toEqual(["python-1"]);
    await using executor = claiming(space.name, { labels: { tenant: "42" } });
    expect(await printed(executor, "print(6 * 7)")).toBe("42");
    expect(executor.podName).toBe("python-1");
    const pod = await ask("GET", `/api/v1/namespaces/${space.name}/pods/python-1`);
    expect(pod).toMatchObject({ metadata: { labels: { tier: "code", tenant: "42" } } });
    // The executor's own directories are there, as in its own pod.
    await executor.files.write("kept.txt", "kept");
    expect(await printed(executor, "cat kept.txt; id -u", "sh")).toBe("kept65532");
    const claims = placeOf(space.name, "sandboxclaims");
    expect(await namesOf(claims)).toHaveLength(1);
    await executor.stop();
    expect(await namesOf(claims)).toEqual([]);
    await expect.poll(() => space.pods(), { timeout: 60_000 }).toEqual(["python-2"]);
  });

  it("gives a session a pod that outlives its program, and ends with its claim", async () => {
    await using space = await TestNamespace.make();
    await using _ = new AgentSandbox(space.name);
    await makePool(space.name);
    const executor = claiming(space.name, { keepAliveMs: 2000, stateful: true });
    await executor.executeCodeBlocks([{ language: "python", code: "kept = 41" }]);
    const { handle } = executor;
    await executor.detach();
    if (!handle) throw new Error("There is no handle.");
    const again = await connectExecutor(handle, { importModule: () => import("../src/index.ts") });
    expect((await again.executeCodeBlocks([{ language: "python", code: "kept + 1" }])).output).toBe("42\n");
    await again.detach?.();
    await expect.poll(() => namesOf(placeOf(space.name, "sandboxclaims")), { timeout: 60_000 }).toEqual([]);
    await expect.poll(() => space.pods(), { timeout: 60_000 }).toEqual(["python-2"]);
    await expect(connectExecutor(handle, { importModule: () => import("../src/index.ts") })).rejects.toThrow(
      /has ended/,
    );
  });

  it("gives a session a pod that is cut off from every network", needs("root"), async () => {
    await using space = await TestNamespace.make();
    await using _ = new AgentSandbox(space.name);
    await using plugin = new PolicyEnforcer(space.name);
    await makePool(space.name, { template: sandboxTemplate("python", { image, network: "none" }) });
    await using executor = claiming(space.name, { network: "none" });
    const code = `
import os, socket
socket.setdefaulttimeout(2)
print(socket.socket().connect_ex((os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"]))) != 0)`;
    expect(await printed(executor, code)).toBe("True");
    const [policy] = await namesOf(`/apis/networking.k8s.io/v1/namespaces/${space.name}/networkpolicies`);
    expect(policy).toBe(executor.podName);
    expect([...plugin.enforced]).toEqual([executor.podName]);
  });

  it("whose pod is lost gives the session another one", async () => {
    await using space = await TestNamespace.make();
    await using _ = new AgentSandbox(space.name);
    await makePool(space.name, { replicas: 2 });
    let reason = "";
    await using executor = claiming(space.name, { onSessionLost: (said) => void (reason = said) });
    await executor.start();
    const first = executor.podName ?? "";
    await ask("DELETE", `/api/v1/namespaces/${space.name}/pods/${first}?gracePeriodSeconds=0`);
    // A deleted pod still runs blocks until its node has ended it.
    await expect.poll(() => reason, { timeout: 60_000 }).toMatch(/is lost.*deleted/);
    const next = await executor.executeCodeBlocks([{ language: "python", code: "print('next')" }]);
    expect(next).toMatchObject({ output: "next\n", stateLost: true });
    expect(executor.podName).not.toBe(first);
  });

  it("that cannot provide a pod causes an error that says why", async () => {
    await using space = await TestNamespace.make();
    expect(await failure(claiming(space.name))).toMatch(/There is no SandboxWarmPool python in the namespace/);
    const template = sandboxTemplate("python", { image: "none:1", imagePullPolicy: "Never" });
    await makePool(space.name, { template });
    // Its controller does not run yet.
    expect(await failure(claiming(space.name))).toMatch(/did not answer the claim.*controller is running/s);
    await using _ = new AgentSandbox(space.name);
    expect(await failure(claiming(space.name, { startTimeoutMs: 3000 }))).toMatch(
      /did not run within 3 s.*SandboxNotReady.*0 of 1 sandboxes of the pool python/s,
    );
    await ask("DELETE", `${placeOf(space.name, "sandboxtemplates")}/python`);
    expect(await failure(claiming(space.name))).toMatch(/could not be served: TemplateNotFound.*kubectl describe/s);
    expect(await namesOf(placeOf(space.name, "sandboxclaims"))).toEqual([]);
  });

  it("defines the pods, so that an executor's `image` is rejected", () => {
    const warmPool = { name: "python" };
    expect(() => new KubernetesCommandLineCodeExecutor({ warmPool, image: "python" })).toThrow(
      /"image".*belongs in the SandboxTemplate/s,
    );
    expect(sandboxTemplate("closed", { network: "none" })).toMatchObject({
      spec: { networkPolicyManagement: "Managed", networkPolicy: {} },
    });
  });
});
