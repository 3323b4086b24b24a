import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, variant } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { kubernetesSubject } from "./support/kubernetes-subject.ts";

// In short, what is not the supervisor's part, which Docker's suite shows: how a pod begins and ends, and what its connection carries.
describe("Kubernetes", needs("kubernetes"), () => {
  testCodeExecutor(
    { describe, it, afterAll },
    kubernetesSubject(""),
    variant("stream that nobody reads", "abort", "life cycle", "lost session", "file streams", "leaks"),
  );
});
