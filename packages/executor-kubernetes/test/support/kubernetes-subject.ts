import { randomUUID } from "node:crypto";
import { type CodeExecutor, loadComponent } from "@fenced/core";
import type { CommonExecutorOptions, ExecutorSubject } from "@fenced/executor-testkit";
import { testKubeconfig } from "@fenced/test-support";
import { afterAll, beforeAll } from "vitest";
import { KubernetesCommandLineCodeExecutor, type KubernetesExecutorOptions } from "../../src/index.ts";
import { createExecutor, deletePod, image, podsWith } from "./cluster.ts";
import { hostCommand } from "./host-command.ts";
import { ownCluster } from "./node.ts";
import { PolicyEnforcer } from "./policy-enforcer.ts";

/** As by default, but with a small request: the suites side by side have more pods than the tests' node has room for otherwise. */
const small = {
  requests: { cpu: "20m", memory: "64Mi" },
  limits: { cpu: "1", memory: "1Gi", "ephemeral-storage": "2Gi" },
};

/**
 * Executors for the kit on the cluster of the tests, where network policies are enforced. For the `describe` around it.
 *
 * @param create - makes one; by the label in its options, its pods are told from those of tests that run at the same time.
 */
export function kubernetesSubject(
  what: string,
  create: (options: KubernetesExecutorOptions & CommonExecutorOptions) => CodeExecutor = createExecutor,
): ExecutorSubject {
  const label = randomUUID();
  let enforcer: PolicyEnforcer | undefined;
  // Another cluster has a network plugin of its own.
  if (ownCluster !== undefined) beforeAll(() => void (enforcer = new PolicyEnforcer()));
  afterAll(() => enforcer?.[Symbol.asyncDispose]());
  return {
    name: `KubernetesCommandLineCodeExecutor${what}`,
    create: (options) => create({ labels: { "fenced-test": label }, resources: small, ...options }),
    load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("../../src/index.ts") }),
    takesWorkDir: false,
    takesNetworkPolicy: true,
    hostCommand: hostCommand("executor-host.ts", image, testKubeconfig, label),
    breakPlace: async (executor) => {
      if (executor instanceof KubernetesCommandLineCodeExecutor) await deletePod(executor.podName ?? "");
    },
    listResources: async () => (await podsWith(`fenced-test=${label}`)).map(({ name }) => name),
  };
}
