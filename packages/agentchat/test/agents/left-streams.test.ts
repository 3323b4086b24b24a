import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { AssistantAgent, CodeExecutorAgent, textMessage, tool, UserProxyAgent } from "../../src/index.ts";
import { python } from "../support/python.ts";
import { ScriptedExecutor } from "../support/scripted-executor.ts";
import { call, ScriptedModel } from "../support/scripted-model.ts";

const task = [textMessage({ source: "user", content: python("while True: pass") })];

/** Reads until something runs, then returns the stream while a read is pending, as a web stream does when it is cancelled. */
async function leaveWhileWaiting(stream: AsyncGenerator, running: Promise<void>): Promise<unknown> {
  const reading = (async () => {
    for (;;) if ((await stream.next()).done === true) return "the end";
  })().catch((error: unknown) => error);
  await running;
  await stream.return(undefined);
  return reading;
}

function signalled(): { readonly running: Promise<void>; readonly run: () => void } {
  let run = (): void => {};
  const running = new Promise<void>((resolve) => {
    run = resolve;
  });
  return { running, run };
}

describe("returning a turn's stream while a read is pending", () => {
  it("aborts a running tool", async () => {
    const { running, run } = signalled();
    let aborted = false;
    const slow = tool({
      name: "slow",
      description: "",
      parameters: z.object({}),
      async execute(_, { signal }) {
        run();
        await Promise.race([once(signal ?? new EventTarget(), "abort"), delay(60_000, undefined, { ref: false })]);
        aborted = signal?.aborted === true;
      },
    });
    const agent = new AssistantAgent({
      name: "helper",
      modelClient: new ScriptedModel([[call("slow")]]),
      tools: [slow],
    });
    expect(await leaveWhileWaiting(agent.onMessagesStream(task), running)).toMatchObject({ name: "AbortError" });
    expect(aborted).toBe(true);
    expect(await agent.saveState()).toEqual({ modelContext: { messages: [] } });
  });

  it("kills a running code block", async () => {
    const { running, run } = signalled();
    const codeExecutor = new ScriptedExecutor(["hang"]);
    codeExecutor.onRun = run;
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor });
    expect(await leaveWhileWaiting(agent.onMessagesStream(task), running)).toMatchObject({ name: "AbortError" });
    expect(codeExecutor.running).toBe(0);
  });

  it("stops asking a person", async () => {
    const { running, run } = signalled();
    const agent = new UserProxyAgent({
      name: "person",
      inputFunc(_, { signal }) {
        run();
        return delay(60_000, "", { signal, ref: false });
      },
    });
    expect(await leaveWhileWaiting(agent.onMessagesStream(task), running)).toMatchObject({ name: "AbortError" });
  });
});
