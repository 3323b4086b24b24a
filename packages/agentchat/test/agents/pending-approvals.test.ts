import { InvalidInputError } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { describe, expect, it, vi } from "vitest";
import { type AgentMessage, CodeExecutorAgent, PendingApprovals, RoundRobinGroupChat } from "../../src/index.ts";
import { python } from "../support/python.ts";
import { ScriptedExecutor } from "../support/scripted-executor.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { untyped } from "../support/untyped.ts";

/** Reads a run, and lets `decide` see each request as it comes. */
async function read(
  stream: AsyncIterable<object>,
  decide: (id: string) => void,
): Promise<{ items: object[]; last: object | undefined }> {
  const items: object[] = [];
  for await (const item of stream) {
    items.push(item);
    if ("type" in item && item.type === "CodeApprovalRequestEvent" && "id" in item) decide(String(item.id));
  }
  return { items, last: items.at(-1) };
}

const answerOf = (items: readonly object[]): object | undefined =>
  items.findLast((item) => "type" in item && item.type === "TextMessage");

describe("pending approvals", () => {
  it("emit a request in the stream, and let the code run once it is approved", needs("python3"), async () => {
    await using codeExecutor = new LocalCommandLineCodeExecutor();
    const pendingApprovals = new PendingApprovals();
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor, pendingApprovals });
    const { items } = await read(agent.runStream({ task: python("print(6 * 7)") }), (id) => {
      expect(pendingApprovals.pending).toEqual([
        { id, source: "runner", blocks: [{ language: "python", code: "print(6 * 7)" }] },
      ]);
      // As if another HTTP request answered while the stream waits.
      setTimeout(() => pendingApprovals.answer(id, { approved: true }), 20);
    });
    expect(answerOf(items)).toMatchObject({ content: "42\n", metadata: { exitCode: "0" } });
    expect(items).toContainEqual(expect.objectContaining({ type: "CodeApprovalRequestEvent", source: "runner" }));
    expect(pendingApprovals.pending).toEqual([]);
  });

  it("mark a refusal in the metadata, and give the model its reason", async () => {
    const codeExecutor = new ScriptedExecutor();
    const pendingApprovals = new PendingApprovals();
    const modelClient = new ScriptedModel([python("x"), "It was refused."]);
    const agent = new CodeExecutorAgent({ name: "a", modelClient, codeExecutor, pendingApprovals });
    const team = new RoundRobinGroupChat({ participants: [agent], maxTurns: 1 });
    const { items } = await read(team.runStream({ task: "?" }), (id) => {
      pendingApprovals.answer(id, { approved: false, reason: "Not on a Sunday." });
    });
    const event = items.find((item): item is AgentMessage => "type" in item && item.type === "CodeExecutionEvent");
    expect(event?.metadata).toEqual({ approved: "false" });
    expect(answerOf(items)).toMatchObject({ metadata: { approved: "false", exitCode: "1" } });
    expect(codeExecutor.given).toEqual([]);
    expect(JSON.stringify(modelClient.requests)).toContain("Not on a Sunday.");
  });

  it("reject late, repeated and malformed answers", async () => {
    const pendingApprovals = new PendingApprovals();
    const agent = new CodeExecutorAgent({ name: "a", codeExecutor: new ScriptedExecutor(), pendingApprovals });
    const ids: string[] = [];
    await read(agent.runStream({ task: python("x") }), (id) => {
      ids.push(id);
      expect(() => pendingApprovals.answer(id, untyped({ approved: "yes" }))).toThrow(InvalidInputError);
      pendingApprovals.answer(id, { approved: true });
      expect(() => pendingApprovals.answer(id, { approved: false })).toThrow("No code is waiting for approval");
    });
    const [id = ""] = ids;
    expect(() => pendingApprovals.answer(id, { approved: true })).toThrow(InvalidInputError);
  });

  it("refuse the code if nobody answers in time", async () => {
    const pendingApprovals = new PendingApprovals({ timeoutMs: 20 });
    const codeExecutor = new ScriptedExecutor();
    const agent = new CodeExecutorAgent({ name: "a", codeExecutor, pendingApprovals });
    const { items } = await read(agent.runStream({ task: python("x") }), () => {});
    expect(answerOf(items)).toMatchObject({
      metadata: { approved: "false" },
      content: expect.stringContaining("Nobody answered within 20 ms."),
    });
    expect(codeExecutor.given).toEqual([]);
  });

  it("are dropped when the run is aborted or its consumer leaves", async () => {
    const pendingApprovals = new PendingApprovals();
    const codeExecutor = new ScriptedExecutor();
    const agent = new CodeExecutorAgent({ name: "a", codeExecutor, pendingApprovals });
    const controller = new AbortController();
    const reading = read(agent.runStream({ task: python("x"), signal: controller.signal }), () => {
      setTimeout(() => controller.abort(new Error("gone")), 10);
    });
    await expect(reading).rejects.toThrow("gone");
    expect(pendingApprovals.pending).toEqual([]);
    for await (const item of agent.runStream({ task: python("x") })) {
      if ("type" in item && item.type === "CodeApprovalRequestEvent") break;
    }
    await vi.waitFor(() => expect(pendingApprovals.pending).toEqual([]), { timeout: 60_000 });
    expect(codeExecutor.given).toEqual([]);
  });

  it("cannot be combined with approvalFunc, nor dumped", () => {
    const options = { name: "a", codeExecutor: new ScriptedExecutor(), pendingApprovals: new PendingApprovals() };
    const approvalFunc = () => ({ approved: true, reason: "" });
    expect(() => new CodeExecutorAgent({ ...options, approvalFunc })).toThrow(
      "either approvalFunc or pendingApprovals",
    );
    expect(() => new CodeExecutorAgent(options).dumpComponent()).toThrow("pendingApprovals");
  });
});
