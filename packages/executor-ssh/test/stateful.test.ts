import { testCodeExecutor } from "@fenced/executor-testkit";
import { mechanism, needs } from "@fenced/test-support";
import { afterAll, describe, expect, it } from "vitest";
import { create, gone } from "./support/server.ts";
import { sshSubject } from "./support/ssh-subject.ts";

const subject = await sshSubject("SshCommandLineCodeExecutor, stateful,", { stateful: true });

describe("executor-ssh", needs("ssh", "python3", "bash", "node"), () => {
  testCodeExecutor({ describe, it, afterAll }, subject, mechanism("state", "lost session"));

  it("can be forked: each fork has its own variables, over one connection", async () => {
    const executor = create({ stateful: true });
    await executor.executeCodeBlocks([{ language: "python", code: "x = [1]" }]);
    const fork = await executor.fork();
    const code = "import os\nx.append(2)\nprint(x, os.environ['SSH_CONNECTION'])";
    const outputs = [fork, executor].map(
      async (each) => (await each.executeCodeBlocks([{ language: "python", code }])).output,
    );
    const [first = "", second] = await Promise.all(outputs);
    expect(first).toMatch(/^\[1, 2\] \S/);
    expect(second).toBe(first);
    await fork.stop();
    await executor.stop();
    await gone();
  });

  it("rejects `outputDir` without `stateful: true`", () => {
    expect(() => create({ outputDir: "displays" })).toThrow(/"outputDir".*needs `stateful: true`/);
  });
});
