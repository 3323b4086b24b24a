import { randomUUID } from "node:crypto";
import { loadComponent, type CodeExecutor } from "@fenced/core";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, place, testKubeconfig } from "@fenced/test-support";
import { describe, it } from "vitest";
import { KubernetesCommandLineCodeExecutor } from "../src/index.ts";
import { createExecutor, deletePod, image, podsWith } from "./support/cluster.ts";
import { hostCommand } from "./support/host-command.ts";

const label = randomUUID();

describe("Kubernetes", needs("kubernetes"), () => {
  testCodeExecutor(
    { describe, it },
    {
      name: "KubernetesCommandLineCodeExecutor",
      create: (options) => createExecutor({ labels: { "fenced-test": label }, ...options }),
      load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("../src/index.ts") }),
      takesWorkDir: false,
      hostCommand: hostCommand("executor-host.ts", image, testKubeconfig, label),
      breakPlace: async (executor) => {
        if (executor instanceof KubernetesCommandLineCodeExecutor) await deletePod(executor.podName ?? "");
      },
      listResources: async () => (await podsWith(`fenced-test=${label}`)).map(({ name }) => name),
    },
    place(),
  );
});
