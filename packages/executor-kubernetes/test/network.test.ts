import { randomUUID } from "node:crypto";
import type { AllowedNetwork } from "@fenced/core";
import { needs } from "@fenced/test-support";
import { playHost } from "@fenced/test-support/loopback-hosts";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { KubernetesExecutorOptions } from "../src/index.ts";
import { ask, createExecutor, namespace, phaseOf, printed } from "./support/cluster.ts";
import { KubeconfigFiles, kubeconfigOf, role, ServiceAccount, testCluster } from "./support/kubeconfig-files.ts";
import { containersOf, ownCluster } from "./support/node.ts";
import { PolicyEnforcer } from "./support/policy-enforcer.ts";
import { stopWithStoppedSupervisor } from "./support/stop-with-stopped-supervisor.ts";
import { TestNamespace } from "./support/test-namespace.ts";

/** Time for a node to remove the object of a pod whose containers it has ended: up to 34 s were seen. */
const goneMs = 120_000;
const policiesOf = (space: string) => `/apis/networking.k8s.io/v1/namespaces/${space}/networkpolicies`;
const list = z.object({
  items: z.array(z.object({ metadata: z.looseObject({ name: z.string() }), spec: z.looseObject({}) })),
});

async function policyOf(pod: string) {
  return list.parse(await ask("GET", policiesOf(namespace))).items.find(({ metadata }) => metadata.name === pod);
}

const connect = (host: string, port: string) => `
import os, socket
try:
    socket.create_connection((${host}, int(${port})), timeout=2)
    print("connected")
except OSError as error:
    print(type(error).__name__)
`;
const server = connect('os.environ["KUBERNETES_SERVICE_HOST"]', 'os.environ["KUBERNETES_SERVICE_PORT"]');
const fetchProgram = (url: string) =>
  `import urllib.request\nprint(urllib.request.urlopen(${JSON.stringify(url)}).read().decode())`;

describe("a network policy", { ...needs("kubernetes", "root"), timeout: 180_000 }, () => {
  it("cuts the pod off, is deleted with it, and lets code talk to the listed hosts through this process", async () => {
    await using _ = new PolicyEnforcer();
    const port = await playHost();
    const network: AllowedNetwork = {
      allow: [`good.example:${port}`, "127.0.0.1"],
      resolve: async () => ["127.0.0.1"],
    };
    await using open = createExecutor();
    await using closed = createExecutor({ network: "none" });
    await using listed = createExecutor({ network });
    // Otherwise the other checks would prove nothing.
    expect(await printed(open, server)).toBe("connected");
    expect(await printed(closed, server)).toMatch(/imeout/);
    expect(await printed(listed, server)).toMatch(/imeout/);
    expect(await printed(listed, fetchProgram(`http://good.example:${port}/page`))).toBe(
      `host of good.example:${port}: GET /page`,
    );
    const code = fetchProgram("https://evil.example/");
    const refused = await listed.executeCodeBlocks([{ language: "python", code }]);
    expect(refused.output).toContain("evil.example is not in this executor's network policy");
    expect(refused.network).toMatchObject([{ allowed: false, host: "evil.example", port: 443 }]);
    expect(await printed(closed, "import os\nprint('HTTP_PROXY' in os.environ)")).toBe("False");

    const pod = closed.podName ?? "";
    expect(await policyOf(pod)).toMatchObject({
      metadata: { ownerReferences: [{ kind: "Pod", name: pod }] },
      spec: { podSelector: { matchLabels: { "fenced.dev/pod": pod } }, policyTypes: ["Ingress", "Egress"] },
    });
    expect(await policyOf(open.podName ?? "")).toBeUndefined();
    await closed.stop();
    await expect.poll(() => phaseOf(pod), { timeout: goneMs }).toBe("gone");
    await expect.poll(() => policyOf(pod), { timeout: 60_000 }).toBeUndefined();
  });

  it("outlives the last process of a pod whose supervisor code has stopped, and stop() does not wait for it", async ({
    skip,
  }) => {
    if (ownCluster === undefined) skip("the processes of another cluster's nodes cannot be seen");
    await using _ = new PolicyEnforcer();
    await using executor = createExecutor({ network: "none" });
    await executor.start();
    const pod = executor.podName ?? "";
    expect(await stopWithStoppedSupervisor(executor)).toContain("The executor was stopped");
    // In this order, since both may disappear between two requests.
    while (await policyOf(pod)) continue;
    expect(await phaseOf(pod)).toBe("gone");
    expect(await containersOf(pod)).toEqual([]);
  });
});

describe("a network policy that the cluster", needs("kubernetes"), () => {
  /** The error of a start in this namespace. */
  async function failure(space: TestNamespace, options: KubernetesExecutorOptions = {}): Promise<string> {
    const executor = createExecutor({ namespace: space.name, network: "none", ...options });
    const error: unknown = await executor.start().catch((thrown: unknown) => thrown);
    await executor.stop();
    return String(error);
  }
  // A pod that reaches nothing in the first place, as far as it can tell.
  const alone: KubernetesExecutorOptions["podTemplate"] = {
    spec: { containers: [{ name: "code", env: [{ name: "KUBERNETES_SERVICE_PORT", value: "1" }] }] },
  };

  it("does not enforce, or cannot be seen to enforce, causes an error that says so before any code runs", async ({
    skip,
  }) => {
    if (ownCluster === undefined) skip("another cluster may enforce it");
    await using space = await TestNamespace.make();
    const [unenforced, unseen] = await Promise.all([failure(space), failure(space, { podTemplate: alone })]);
    expect(unenforced).toMatch(/does not enforce NetworkPolicy.*reaches tcp 10\.222\.0\.1 443.*network plugin/s);
    expect(unseen).toMatch(/Cannot tell.*neither the API server nor a name server.*denies everything/s);
    await expect.poll(() => space.pods(), { timeout: goneMs }).toEqual([]);

    const policy = { podSelector: {}, policyTypes: ["Ingress", "Egress"] };
    await ask("POST", policiesOf(space.name), { metadata: { name: "closed" }, spec: policy });
    await using executor = createExecutor({ namespace: space.name, network: "none", podTemplate: alone });
    expect(await printed(executor, "print('closed before')")).toBe("closed before");

    const rule = { podSelector: { matchExpressions: [{ key: "fenced.dev/pod", operator: "Exists" }] }, egress: [{}] };
    await ask("POST", policiesOf(space.name), { metadata: { name: "leak" }, spec: rule });
    expect(await failure(space)).toMatch(/NetworkPolicy leak lets this executor's pods communicate.*Policies add up/s);
  }, 240_000);

  it("does not let this user create causes an error with the Role that does", async () => {
    await using files = await KubeconfigFiles.make();
    await using account = await ServiceAccount.make();
    await account.grant(role);
    const user = { token: account.token };
    const kubeconfig = await files.write("account", kubeconfigOf({ ...testCluster(), user }));
    const label = randomUUID();
    await using executor = createExecutor({ kubeconfig, network: "none", labels: { "fenced-test": label } });
    await expect(executor.start()).rejects.toThrow(
      /not allowed to create networkpolicies in the namespace default[^]*resources: \[networkpolicies\], verbs: \[create, list\]/,
    );
  });
});
