import { testCodeExecutor } from "@fenced/executor-testkit";
import { mechanism, needs, testKubeconfig } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { image, namespace } from "./support/cluster.ts";
import { kubernetesSubject } from "./support/kubernetes-subject.ts";
import { WarmExecutor } from "./support/warm-executor.ts";

// Python blocks are forked from a waiting interpreter; everything else is the same as in the suite without it.
describe("Kubernetes", needs("kubernetes"), () => {
  const create = (options: object) =>
    new WarmExecutor({ image, kubeconfig: testKubeconfig, namespace, warm: {}, ...options });
  testCodeExecutor(
    { describe, it, afterAll },
    kubernetesSubject(", with warm Python,", create),
    mechanism(
      "standard input",
      "environment",
      "timeout",
      "abort",
      "background processes",
      "life cycle",
      "lost session",
    ),
  );
  // Otherwise the suite would prove nothing.
  afterAll(() => {
    if (WarmExecutor.sessions === 0) throw new Error("No session had a waiting interpreter.");
  });
});
