import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { CodeExecutorAgent, RoundRobinGroupChat, textMessage } from "../../src/index.ts";
import { collect, types } from "../support/collect.ts";
import { python } from "../support/python.ts";
import { codeResult, ScriptedExecutor } from "../support/scripted-executor.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const workDir = temporaryDirectory();

describe("output of a running program", () => {
  it("is streamed before the program ends", needs("python3"), async () => {
    await using codeExecutor = new LocalCommandLineCodeExecutor({ workDir: workDir.path });
    const runner = new CodeExecutorAgent({ name: "runner", codeExecutor });
    const code = "import os, time\nprint('ready', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)";
    const seen: string[] = [];
    for await (const item of runner.runStream({ task: python(code) })) {
      if (!("type" in item) || item.type !== "CodeOutputEvent") continue;
      expect(item).toMatchObject({ source: "runner", index: 0, stream: "stdout" });
      seen.push(item.text);
      // The program waits for this file, so its output was seen before it ended.
      await writeFile(join(workDir.path, "go"), "");
    }
    expect(seen.join("")).toBe("ready\n");
  });

  it("comes between the code and its result, and is not saved", async () => {
    const codeExecutor = new ScriptedExecutor([codeResult({ output: "7\n" })]);
    codeExecutor.live = ["7", "oops"];
    const modelClient = new ScriptedModel([python("x"), "Seven."]);
    const agent = new CodeExecutorAgent({ name: "a", modelClient, codeExecutor });
    const team = new RoundRobinGroupChat({ participants: [agent], maxTurns: 1 });
    const items = await collect(team.runStream({ task: "?" }));
    expect(types(items)).toEqual([
      "TextMessage",
      "CodeGenerationEvent",
      "CodeOutputEvent",
      "CodeOutputEvent",
      "CodeExecutionEvent",
      "TextMessage",
      "end",
    ]);
    expect(items[3]).toMatchObject({ source: "a", index: 0, stream: "stderr", text: "oops" });
    expect(JSON.stringify([items.at(-1), await team.saveState()])).not.toContain("CodeOutputEvent");
    expect(JSON.stringify(modelClient.requests)).not.toContain("oops");
  });

  it("is cut after 200,000 characters", async () => {
    const codeExecutor = new ScriptedExecutor();
    codeExecutor.live = Array.from({ length: 1000 }, () => "x".repeat(1000));
    const agent = new CodeExecutorAgent({ name: "a", codeExecutor });
    const output = (await collect(agent.onMessagesStream([textMessage({ source: "user", content: python("x") })])))
      .flatMap((item) => ("type" in item && item.type === "CodeOutputEvent" ? [item.text] : []))
      .join("");
    expect(output).toMatch(/^x{200000}\n\[\.\.\. more output is not shown while the code runs \.\.\.\]\n$/);
  });
});

describe("a code block that cannot run", () => {
  const say = (content: string): [ReturnType<typeof textMessage>] => [textMessage({ source: "coder", content })];

  it("is reported along with the output of the blocks that ran", async () => {
    const agent = new CodeExecutorAgent({ name: "a", codeExecutor: new ScriptedExecutor() });
    const content = `${python("a")}\n\`\`\`ruby\nb\n\`\`\`\n\`\`\`\nc\n\`\`\`\n\`\`\`sh\ncut`;
    const { chatMessage } = await agent.onMessages(say(content));
    expect(chatMessage.content).toBe(
      "ok\n\nNot all of the code was run. Blocks in ruby are not run here. Blocks that do not name a language are not run. " +
        "A block that is never closed is not run: end it with a line that says ```. Languages that run here: python, sh.",
    );
  });

  it("is reported if no other block ran", async () => {
    const agent = new CodeExecutorAgent({ name: "a", codeExecutor: new ScriptedExecutor() });
    const { chatMessage } = await agent.onMessages(say("```python\nprint(1)\n"));
    expect(chatMessage.content).toMatch(/There is no code block to run\. A block that is never closed is not run:/);
  });

  it("runs after all if its last line of code ends with the closing fence", async () => {
    const codeExecutor = new ScriptedExecutor();
    const agent = new CodeExecutorAgent({ name: "a", codeExecutor });
    await agent.onMessages(say("```python\nprint(1)```"));
    expect(codeExecutor.given).toEqual([[{ language: "python", code: "print(1)" }]]);
  });

  it("is reported to the model that wrote it, which can retry", async () => {
    const codeExecutor = new ScriptedExecutor();
    const modelClient = new ScriptedModel(["```python\ncut", python("whole"), "Done."]);
    const agent = new CodeExecutorAgent({ name: "a", codeExecutor, modelClient, maxRetriesOnError: 1 });
    const { chatMessage, innerMessages } = await agent.onMessages(say("go"));
    expect(chatMessage.content).toBe("Done.");
    expect(types(innerMessages)).toEqual(["ThoughtEvent", "CodeGenerationEvent", "CodeExecutionEvent"]);
    expect(JSON.stringify(modelClient.requests[1]?.messages.at(-1))).toContain("never closed");
    expect(codeExecutor.given).toHaveLength(1);
  });

  it.each(["```ruby\nputs 1\n```", "```python\ncut"])(
    "is reported in the next turn if the model may not retry: %j",
    async (text) => {
      const modelClient = new ScriptedModel([text, "Sorry."]);
      const agent = new CodeExecutorAgent({ name: "a", codeExecutor: new ScriptedExecutor(), modelClient });
      expect((await agent.onMessages(say("go"))).chatMessage.content).toBe(text);
      await agent.onMessages(say("well?"));
      expect(JSON.stringify(modelClient.requests[1]?.messages)).toContain("There is no code block to run.");
    },
  );

  it("is a plain answer if it only shows data", async () => {
    const modelClient = new ScriptedModel(['```json\n{"a": 1}\n```', "Yes."]);
    const agent = new CodeExecutorAgent({ name: "a", codeExecutor: new ScriptedExecutor(), modelClient });
    await agent.onMessages(say("go"));
    await agent.onMessages(say("well?"));
    expect(JSON.stringify(modelClient.requests[1]?.messages)).not.toContain("There is no code block");
  });
});
