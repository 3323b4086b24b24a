import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, testKubeconfig, variant } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { image, namespace } from "./support/cluster.ts";
import { kubernetesSubject } from "./support/kubernetes-subject.ts";
import { WarmExecutor } from "./support/warm-executor.ts";

// Blocks of Python are forked from an interpreter that waits; all else is as in the suite without it.
describe("Kubernetes", needs("kubernetes"), () => {
  const create = (options: object) =>
    new WarmExecutor({ image, kubeconfig: testKubeconfig, namespace, warm: {}, ...options });
  testCodeExecutor(
    { describe, it, afterAll },
    kubernetesSubject(", with warm Python,", create),
    variant("standard input", "environment", "timeout", "abort", "background processes", "life cycle", "lost session"),
  );
  // Otherwise the suite has shown nothing.
  afterAll(() => {
    if (WarmExecutor.sessions <= 20) throw new Error("Hardly a session had an interpreter that waits.");
  });
});
