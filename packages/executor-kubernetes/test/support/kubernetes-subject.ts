import { randomUUID } from "node:crypto";
import { type CodeExecutor, connectExecutor, loadComponent } from "@fenced/core";
import type { CommonExecutorOptions, ExecutorSubject } from "@fenced/executor-testkit";
import { testKubeconfig } from "@fenced/test-support";
import { afterAll, beforeAll } from "vitest";
import { KubernetesCommandLineCodeExecutor, type KubernetesExecutorOptions } from "../../src/index.ts";
import { createExecutor, deletePod, image, jobsWith, podsWith } from "./cluster.ts";
import { hostCommand } from "./host-command.ts";
import { ownCluster } from "./node.ts";
import { PolicyEnforcer } from "./policy-enforcer.ts";

/** The defaults, but with a small request: otherwise the pods of concurrent suites would not fit on the tests' node. */
const small = {
  requests: { cpu: "20m", memory: "64Mi" },
  limits: { cpu: "1", memory: "1Gi", "ephemeral-storage": "2Gi" },
};

/**
 * Executors for the kit on the cluster of the tests, where network policies are enforced. For the `describe` around it.
 *
 * @param create - creates one; the label in its options tells its pods apart from those of tests that run at the same time.
 * @param kind - those that other programs create.
 */
export function kubernetesSubject(
  what: string,
  create: (options: KubernetesExecutorOptions & CommonExecutorOptions) => CodeExecutor = createExecutor,
  kind: "stateful" | "" = "",
): ExecutorSubject {
  const label = randomUUID();
  let enforcer: PolicyEnforcer | undefined;
  // Another cluster has its own network plugin.
  if (ownCluster !== undefined) beforeAll(() => void (enforcer = new PolicyEnforcer()));
  afterAll(() => enforcer?.[Symbol.asyncDispose]());
  return {
    name: `KubernetesCommandLineCodeExecutor${what}`,
    create: (options) => create({ labels: { "fenced-test": label }, resources: small, ...options }),
    load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("../../src/index.ts") }),
    connect: (handle, options) =>
      connectExecutor(handle, { ...options, importModule: () => import("../../src/index.ts") }),
    takesWorkDir: false,
    takesNetworkPolicy: true,
    hostCommand: hostCommand("executor-host.ts", image, testKubeconfig, label, kind),
    breakPlace: async (executor) => {
      if (executor instanceof KubernetesCommandLineCodeExecutor) await deletePod(executor.podName ?? "");
    },
    listResources: async () => [
      ...(await podsWith(`fenced-test=${label}`)).map(({ name }) => name),
      ...(await jobsWith(`fenced-test=${label}`)),
    ],
  };
}
