import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { mechanism, needs } from "@fenced/test-support";
import { afterAll, describe, expect, it } from "vitest";
import { bubblewrapsWith, killSandbox, sandboxSubject } from "../support/sandbox-subject.ts";

/** Can be identified without a block, which would have to wait for its turn. */
class StatefulSandbox extends LocalCommandLineCodeExecutor {
  get sandbox(): string {
    return this.id;
  }
}

describe("a stateful session in a sandbox", needs("python3", "bash", "node", "bubblewrap"), () => {
  testCodeExecutor(
    { describe, it, afterAll },
    {
      ...sandboxSubject,
      name: "LocalCommandLineCodeExecutor, in an OS sandbox, stateful,",
      create: (options) => new StatefulSandbox({ ...options, isolation: "os-sandbox", stateful: true }),
      hostCommand: [...sandboxSubject.hostCommand, "stateful"],
      breakPlace: async (executor) => {
        if (!(executor instanceof StatefulSandbox)) throw new Error("another executor");
        await killSandbox(await bubblewrapsWith(executor.sandbox));
      },
    },
    mechanism("state", "lost session", "watched directories"),
  );

  it("can be forked, and the fork ends with its original", async () => {
    const executor = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", stateful: true });
    const printed = async (code: string, from: Pick<LocalCommandLineCodeExecutor, "executeCodeBlocks"> = executor) =>
      (await from.executeCodeBlocks([{ language: "python", code }])).output;
    await printed("x = [1]");
    await using fork = await executor.fork();
    expect(await printed("x.append(2); print(x)", fork)).toBe("[1, 2]\n");
    expect(await printed("print(x)")).toBe("[1]\n");
    await executor[Symbol.asyncDispose]();
    await expect(printed("print(x)", fork)).rejects.toThrow("The executor is stopped");
  });
});
