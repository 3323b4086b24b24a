import { testCodeExecutor } from "@fenced/executor-testkit";
import { mechanism, needs } from "@fenced/test-support";
import { afterAll, describe, expect, it } from "vitest";
import { createExecutor } from "./support/cluster.ts";
import { kubernetesSubject } from "./support/kubernetes-subject.ts";
import { ownCluster } from "./support/node.ts";
import { stopWithStoppedSupervisor } from "./support/stop-with-stopped-supervisor.ts";

describe("Kubernetes, with a stateful session", needs("kubernetes"), () => {
  const subject = kubernetesSubject(
    ", stateful,",
    (options) => createExecutor({ stateful: true, ...options }),
    "stateful",
  );
  // Here, there are variables to lose.
  testCodeExecutor({ describe, it, afterAll }, subject, {
    groups: ["session that outlives its program", "submitted run of a session that outlives its program"],
  });
  testCodeExecutor({ describe, it, afterAll }, subject, mechanism("state", "host functions", "lost session"));

  it("can be forked: each fork has its own variables, in one pod", async () => {
    await using executor = createExecutor({ stateful: true });
    await executor.executeCodeBlocks([{ language: "python", code: "x = [1]" }]);
    await using fork = await executor.fork();
    const code = "import socket\nx.append(2)\nprint(x, socket.gethostname())";
    const outputs = [fork, executor].map(
      async (each) => (await each.executeCodeBlocks([{ language: "python", code }])).output,
    );
    expect(await Promise.all(outputs)).toEqual(Array(2).fill(`[1, 2] ${executor.podName}\n`));
  });

  it("stops without waiting for a supervisor that the code has stopped", async ({ skip }) => {
    if (ownCluster === undefined) skip("the processes of another cluster's nodes cannot be seen");
    await using executor = createExecutor({ stateful: true });
    await executor.start();
    expect(await stopWithStoppedSupervisor(executor)).toContain("The executor was stopped");
  });
});
