import { connectExecutor } from "@fenced/core";
import * as local from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { CodeExecutorAgent, textMessage } from "../../src/index.ts";

const code =
  "```python\nimport os, time\nopen('runs', 'a').write('.')\nprint('begun', flush=True)\nwhile not os.path.exists('go'): time.sleep(.05)\nprint('ended')\n```";

async function rest(items: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of items);
}

describe("a CodeExecutorAgent whose session outlives its program", needs("python3"), () => {
  it("goes on with the run of a turn that another program has begun, and runs nothing twice", async () => {
    const executor = new local.LocalCommandLineCodeExecutor({ warm: {}, keepAliveMs: 60_000 });
    const runner = new CodeExecutorAgent({ name: "runner", codeExecutor: executor });
    const message = textMessage({ source: "coder", content: code });
    const first = runner.onMessagesStream([message]);
    await first.next();
    const { handle } = executor;
    if (!handle) throw new Error("there is no handle");
    // As if the program had died.
    await executor.detach();
    await expect(rest(first)).rejects.toMatchObject({ code: "executor_stopped" });

    await using again = await connectExecutor(handle, { importModule: async () => local });
    const later = new CodeExecutorAgent({ name: "runner", codeExecutor: again });
    await again.files.write("go", "");
    const answer = await later.onMessages([message]);
    expect(answer.chatMessage).toMatchObject({ content: expect.stringContaining("begun\nended") });
    expect((await again.files.read("runs")).length).toBe(1);
    // A request that was answered, and comes again, is a new one.
    await later.onMessages([message]);
    expect((await again.files.read("runs")).length).toBe(2);
  });

  it("does not wait for a submission when the turn is aborted", async () => {
    class Stuck extends local.LocalCommandLineCodeExecutor {
      override submit(): Promise<never> {
        return new Promise(() => {});
      }
    }
    await using executor = new Stuck({ warm: {}, keepAliveMs: 60_000 });
    await executor.start();
    const runner = new CodeExecutorAgent({ name: "runner", codeExecutor: executor });
    const aborting = new AbortController();
    const turn = runner.onMessages([textMessage({ source: "coder", content: code })], { signal: aborting.signal });
    aborting.abort();
    await expect(turn).rejects.toMatchObject({ name: "AbortError" });
  });

  it("ends a run that is aborted, and runs the code again when it is asked again", async () => {
    await using executor = new local.LocalCommandLineCodeExecutor({ warm: {}, keepAliveMs: 60_000 });
    const runner = new CodeExecutorAgent({ name: "runner", codeExecutor: executor });
    const message = textMessage({ source: "coder", content: code });
    const aborting = new AbortController();
    const turn = runner.onMessagesStream([message], { signal: aborting.signal });
    await turn.next();
    aborting.abort();
    await expect(rest(turn)).rejects.toMatchObject({ name: "AbortError" });
    expect(executor.runs().map(({ state }) => state)).toEqual(["failed"]);
    await executor.files.write("go", "");
    const answer = await runner.onMessages([message]);
    expect(answer.chatMessage).toMatchObject({ content: expect.stringContaining("begun\nended") });
    expect((await executor.files.read("runs")).length).toBe(2);
  });
});
