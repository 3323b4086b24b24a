import { setImmediate } from "node:timers/promises";
import { directoryStore } from "@fenced/checkpoints";
import type { CodeExecutor } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { type AgentInputItem, run, RunState, setTracingDisabled, tool } from "@openai/agents";
import { filesystem, SandboxAgent, shell, skills } from "@openai/agents/sandbox";
import { assistantMessage, functionCall, ScriptedModel, type ScriptedModelInput } from "@openai/agents/testing";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import type { SandboxRequest } from "../../src/index.ts";
import { newClient, png, temporary } from "./support.ts";

setTracingDisabled(true);

const osSandbox = ({ restore }: SandboxRequest): CodeExecutor =>
  new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", ...(restore && { restore }) });
const container = ({ restore }: SandboxRequest): CodeExecutor =>
  new DockerCommandLineCodeExecutor({ image: "fenced-test:python", network: "none", ...(restore && { restore }) });

let lastCall = 0;
/** One turn of a model that calls a tool. */
function call(name: string, args: Record<string, unknown>): ScriptedModelInput {
  lastCall += 1;
  return [functionCall(name, args, { callId: `call-${lastCall}` })];
}

function patch(type: "create_file" | "update_file", path: string, diff: string): ScriptedModelInput {
  lastCall += 1;
  return [
    { type: "apply_patch_call", callId: `call-${lastCall}`, status: "completed", operation: { type, path, diff } },
  ];
}

/** What the tools said, in order. */
function outputs(items: readonly AgentInputItem[]): string[] {
  return items.flatMap((item) => {
    if (item.type === "function_call_result") return [JSON.stringify(item.output)];
    return item.type === "apply_patch_call_output" ? [item.status] : [];
  });
}

const done: ScriptedModelInput = [assistantMessage("done")];
const deploy = tool({
  name: "deploy",
  description: "Asks first.",
  parameters: z.object({}),
  needsApproval: true,
  execute: async () => "deployed",
});

describe("an agent", () => {
  it("uses a shell, patches, skills and images", needs("bubblewrap", "python3"), async () => {
    const model = new ScriptedModel([
      call("exec_command", { cmd: "echo $((6 * 7)); cat .agents/sums/SKILL.md" }),
      patch("create_file", "hello.py", "+print('hello')\n"),
      patch("update_file", "hello.py", "-print('hello')\n+print('hello, patch')\n"),
      call("exec_command", { cmd: "python3 hello.py; python3 .agents/sums/scripts/sum.py 1 2 3" }),
      call("view_image", { path: "dot.png" }),
      call("view_image", { path: "none.png" }),
      call("exec_command", { cmd: 'read -r line; echo "got $line"', tty: true, yield_time_ms: 300 }),
      call("write_stdin", { session_id: 1, chars: "typed\n", yield_time_ms: 30_000 }),
      done,
    ]);
    const agent = new SandboxAgent({
      name: "coder",
      model,
      capabilities: [
        shell(),
        filesystem(),
        skills({
          skills: [
            {
              name: "sums",
              description: "Adds numbers.",
              content: "---\nname: sums\n---\nRun scripts/sum.py.",
              scripts: { "sum.py": { type: "file", content: "import sys; print(sum(map(int, sys.argv[1:])))" } },
            },
          ],
        }),
      ],
      defaultManifest: { entries: { "dot.png": { type: "file", content: png } } },
    });
    const client = newClient({ createExecutor: osSandbox });
    const result = await run(agent, "Go.", { sandbox: { client } });
    expect(result.finalOutput).toBe("done");
    const said = outputs(result.history);
    expect([said[1], said[2]]).toEqual(["completed", "completed"]);
    expect(said[0]).toContain("42\\n---\\nname: sums");
    expect(said[3]).toContain("hello, patch\\n6\\n");
    expect(said[4]).toContain(png.toString("base64"));
    expect(said[5]).toContain("was not found");
    expect(said[7]).toContain("got typed");
    expect(said[7]).toContain("Process exited with code 0");
    expect(model.firstCall?.request.systemInstructions).toContain(".agents/sums");
    model.assertComplete();
  });

  describe.each([
    { where: "in the OS sandbox", createExecutor: osSandbox, requirements: needs("bubblewrap", "python3") },
    { where: "in Docker", createExecutor: container, requirements: needs("docker") },
  ])("$where", ({ createExecutor, requirements }) => {
    it("is interrupted, and goes on in another program with its files", requirements, async () => {
      const snapshots = directoryStore(await temporary());
      const agentOf = (...script: ScriptedModelInput[]) =>
        new SandboxAgent({
          name: "coder",
          model: new ScriptedModel(script),
          tools: [deploy],
          capabilities: [shell()],
          defaultManifest: { environment: { WORD: "kept" } },
        });
      const first = newClient({ createExecutor, snapshots });
      const before = agentOf(call("exec_command", { cmd: 'echo "$WORD" > file.txt' }), call("deploy", {}));
      const interrupted = await run(before, "Go.", { sandbox: { client: first } });
      expect(interrupted.interruptions).toHaveLength(1);
      const text = interrupted.state.toString();
      await first[Symbol.asyncDispose]();

      const second = newClient({ createExecutor, snapshots });
      const after = agentOf(call("exec_command", { cmd: 'cat file.txt; echo "again $WORD"; pwd' }), done);
      const state = await RunState.fromString(after, text);
      for (const interruption of state.getInterruptions()) state.approve(interruption);
      const result = await run(after, state, { sandbox: { client: second } });
      expect(result.finalOutput).toBe("done");
      expect(outputs(result.history).at(-2)).toContain("deployed");
      expect(outputs(result.history).at(-1)).toContain("kept\\nagain kept\\n/");
    });
  });

  it("goes on in the same program without snapshots, and is told what is lost in another one", async () => {
    const agent = new SandboxAgent({
      name: "coder",
      model: new ScriptedModel([
        call("exec_command", { cmd: "echo kept > file.txt" }),
        call("deploy", {}),
        call("exec_command", { cmd: "read -r line < file.txt; echo $line" }),
        call("deploy", {}),
        call("exec_command", { cmd: "read -r line < file.txt; echo $line; pwd" }),
        done,
      ]),
      tools: [deploy],
      capabilities: [shell()],
    });
    const client = newClient();
    const interrupted = await run(agent, "Go.", { sandbox: { client } });
    const text = interrupted.state.toString();
    const elsewhere = await RunState.fromString(agent, text);
    for (const interruption of elsewhere.getInterruptions()) elsewhere.approve(interruption);
    await expect(run(agent, elsewhere, { sandbox: { client: newClient() } })).rejects.toThrow(
      "its files were not kept",
    );

    const here = await RunState.fromString(agent, text);
    for (const interruption of here.getInterruptions()) here.approve(interruption);
    const again = await run(agent, here, { sandbox: { client } });
    expect(outputs(again.history).at(-1)).toContain("kept");
    // The same state, whose session has waited.
    for (const interruption of again.interruptions) again.state.approve(interruption);
    const result = await run(agent, again.state, { sandbox: { client } });
    expect(outputs(result.history).at(-1)).toMatch(/kept\\n\/.+\/workspace/);
  });

  it("survives endless output", needs("bubblewrap", "python3"), async () => {
    const model = new ScriptedModel([
      call("exec_command", { cmd: "cat /dev/zero | tr '\\0' x", yield_time_ms: 500, max_output_tokens: 100 }),
      call("write_stdin", { session_id: 1, chars: "\u0003", yield_time_ms: 30_000, max_output_tokens: 100 }),
      call("exec_command", { cmd: "echo still here" }),
      done,
    ]);
    const agent = new SandboxAgent({ name: "coder", model, capabilities: [shell()] });
    const result = await run(agent, "Go.", { sandbox: { client: newClient({ createExecutor: osSandbox }) } });
    const said = outputs(result.history);
    expect(said[0]).toContain("Process running with session ID 1");
    expect(said[1]).toContain("Process exited with code 130");
    expect(said[2]).toContain("still here");
    expect(said.join("").length).toBeLessThan(3000);
  });

  it("is told when its sandbox is killed, and has its files in the next one", needs("docker"), async () => {
    const executors: CodeExecutor[] = [];
    const client = newClient({
      createExecutor: (request) => {
        const executor = container(request);
        executors.push(executor);
        return executor;
      },
    });
    const session = await client.create();
    await session.exec({ cmd: "echo kept > file.txt" });
    const killed = session.execCommand({ cmd: "kill -9 -1; sleep 600", yieldTimeMs: 600_000 });
    await expect(killed).rejects.toThrow("is lost");
    expect(await session.exec({ cmd: "cat file.txt" })).toMatchObject({ stdout: "kept\n" });
    expect(await session.running()).toBe(true);
    expect(executors).toHaveLength(1);
  });
});

it("a session knows its workspace's path also after its state was serialized", async () => {
  const client = newClient();
  const { state } = await client.create();
  const { root } = state.manifest;
  const serialized = await client.serializeSessionState(state);
  expect(serialized.manifest).toMatchObject({ root: "/workspace" });
  await setImmediate();
  expect(state.manifest.root).toBe(root);
  const resumed = await client.resume(await client.deserializeSessionState(serialized));
  expect(resumed.state.manifest.root).toBe(root);
});

it("a state that somebody has changed names no other sandbox", async () => {
  const client = newClient();
  const session = await client.create();
  const state = await client.serializeSessionState(session.state);
  expect(await client.resume(await client.deserializeSessionState(state))).toBeDefined();
  await expect(client.deserializeSessionState({ ...state, sandboxId: "../../etc" })).rejects.toThrow("sandboxId");
  await expect(client.deserializeSessionState({ ...state, snapshotId: "../../etc" })).rejects.toThrow("snapshotId");
});
