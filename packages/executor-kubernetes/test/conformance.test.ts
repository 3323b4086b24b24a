import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, variant } from "@fenced/test-support";
import { afterAll, describe, it } from "vitest";
import { kubernetesSubject } from "./support/kubernetes-subject.ts";

// Only what does not depend on the supervisor, which the suite in executor-local's sandbox covers: how pods start and end, and the connection.
describe("Kubernetes", needs("kubernetes"), () => {
  testCodeExecutor(
    { describe, it, afterAll },
    kubernetesSubject(""),
    variant("stream that nobody reads", "abort", "life cycle", "lost session", "file streams", "leaks"),
  );
});
