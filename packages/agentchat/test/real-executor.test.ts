import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { isAlive } from "@fenced/test-support/is-alive";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  AssistantAgent,
  CodeExecutorTool,
  CodeExecutorAgent,
  MaxMessageTermination,
  messageToText,
  RoundRobinGroupChat,
  TextMentionTermination,
  textMessage,
} from "../src/index.ts";
import { python } from "./support/python.ts";
import { call, ScriptedModel } from "./support/scripted-model.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

const workDir = temporaryDirectory();

describe("agents with a real executor", needs("python3"), () => {
  let codeExecutor: LocalCommandLineCodeExecutor;

  beforeAll(async () => {
    codeExecutor = new LocalCommandLineCodeExecutor({ workDir: workDir.path });
    await codeExecutor.start();
  });

  afterAll(async () => {
    await codeExecutor.stop();
  });

  it("correct code that failed", async () => {
    const modelClient = new ScriptedModel([
      python("print({'a': 1}['b'])"),
      `${python("print({'a': 1}['a'])")}\nTERMINATE`,
      "It is 1. TERMINATE",
    ]);
    const team = new RoundRobinGroupChat({
      participants: [
        new AssistantAgent({ name: "coder", modelClient }),
        new CodeExecutorAgent({ name: "runner", codeExecutor }),
      ],
      terminationCondition: new MaxMessageTermination(10).or(
        new TextMentionTermination("TERMINATE", { sources: ["coder"], unlessCode: true }),
      ),
    });
    const { messages, stopReason } = await team.run({ task: "What is a? Say TERMINATE when you know." });
    expect(messages).toHaveLength(6);
    expect(messages[2]).toMatchObject({ source: "runner", metadata: { exitCode: "1" } });
    expect(messages.slice(2, 3).map(messageToText).join("")).toMatch(/failed with exit code 1.*KeyError: 'b'/s);
    expect(messages[4]).toMatchObject({ content: "1\n", metadata: { exitCode: "0" } });
    expect(stopReason).toBe('"coder" mentioned "TERMINATE".');
  });

  it.each([
    ["<answer>", "</answer>"],
    ["<details>\n<summary>Code</summary>", "</details>"],
    ["<think>\nshort\n</think>", ""],
    ["<think>\n```python\nprint('a draft')\n```\n\n</think>", ""],
    ["A draft.\n\n</think>", ""],
  ])("run code directly below %j", async (above, below) => {
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor });
    const content = `${above}\n${python("print(6 * 7)")}\n${below}`;
    const { chatMessage } = await agent.onMessages([textMessage({ source: "coder", content })]);
    expect(messageToText(chatMessage)).toBe("42\n");
  });

  it("say so if every fence inside the code has a language", async () => {
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor });
    const inner = (language: string): string => `"""\n\`\`\`${language}\nx\n\`\`\`\n"""`;
    const content = python(`a = ${inner("bash")}\nb = ${inner("json")}`);
    const { chatMessage } = await agent.onMessages([textMessage({ source: "coder", content })]);
    expect(messageToText(chatMessage)).toContain("four backticks");
  });

  it.each(["```bash", "```"])("say how to write code that contains %s", async (inner) => {
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor });
    const code = `text = """# Title\n\n${inner}\npip install x\n\`\`\`\n"""\nprint(len(text))`;
    const answerTo = async (content: string): Promise<string> =>
      messageToText((await agent.onMessages([textMessage({ source: "coder", content })])).chatMessage);
    const note = "If the code itself contains lines with ```, put lines with four backticks around it: ````.";
    expect(await answerTo(python(code))).toContain(note);
    expect(await answerTo(`\`\`\`\`python\n${code}\n\`\`\`\``)).toMatch(/^\d+\n$/);
  });

  it("write code, retry and reflect", async () => {
    const modelClient = new ScriptedModel([
      python("import json; json.loads('nope')"),
      '{"reason": "not JSON", "retry": true}',
      python("print(len('nope'))"),
      "It has 4 letters.",
    ]);
    const agent = new CodeExecutorAgent({ name: "analyst", codeExecutor, modelClient, maxRetriesOnError: 1 });
    const { chatMessage, innerMessages } = await agent.onMessages([]);
    expect(innerMessages).toMatchObject([
      { type: "CodeGenerationEvent" },
      { type: "CodeExecutionEvent", result: { exitCode: 1 } },
      { type: "ThoughtEvent" },
      { type: "CodeGenerationEvent" },
      { type: "CodeExecutionEvent", result: { exitCode: 0, output: "4\n" } },
    ]);
    expect(messageToText(chatMessage)).toBe("It has 4 letters.");
  });

  it("use an executor as a tool", async () => {
    const good = call("execute_code", { language: "python", code: "print(6 * 7)" }, "1");
    const bad = call("execute_code", { language: "python", code: "raise SystemExit(3)" }, "2");
    const unknown = call("execute_code", { language: "cobol", code: "x" }, "3");
    const malformed = call("execute_code", { code: "x" }, "4");
    const modelClient = new ScriptedModel([[good, bad, unknown, malformed]]);
    const tools = [new CodeExecutorTool(codeExecutor)];
    const agent = new AssistantAgent({ name: "analyst", modelClient, tools });
    const { chatMessage } = await agent.onMessages([]);
    const results = chatMessage.type === "ToolCallSummaryMessage" ? chatMessage.results : [];
    expect(results.map(({ isError }) => isError)).toEqual([false, false, false, true]);
    expect(results.map(({ content }) => content)).toMatchObject([
      "42\n",
      "The code failed with exit code 3. It printed nothing.",
      expect.stringContaining('unknown language "cobol"'),
      expect.stringContaining("language"),
    ]);
    expect(modelClient.requests[0]?.options.tools?.[0]?.description).toContain("Languages: python");
  });

  it.each([
    [
      "an agent",
      (code: string) => ({
        agent: new CodeExecutorAgent({ name: "runner", codeExecutor }),
        task: python(code),
      }),
    ],
    [
      "a tool",
      (code: string) => ({
        agent: new AssistantAgent({
          name: "analyst",
          modelClient: new ScriptedModel([[call("execute_code", { language: "python", code })]]),
          tools: [new CodeExecutorTool(codeExecutor)],
        }),
        task: "go",
      }),
    ],
  ])("leave no process after an abort of %s", async (_, make) => {
    const controller = new AbortController();
    const pidFile = join(workDir.path, "pid");
    const program =
      "import os, time; open('pid', 'w').write(str(os.getpid())); os.rename('pid', 'pid.done'); time.sleep(60)";
    const { agent, task } = make(program);
    const team = new RoundRobinGroupChat({ participants: [agent], maxTurns: 1 });
    const outcome = team.run({ task, signal: controller.signal }).catch((reason: unknown) => reason);
    const pid = Number(await appears(`${pidFile}.done`));
    expect(isAlive(pid)).toBe(true);
    controller.abort("stop");
    expect(await outcome).toBe("stop");
    expect(isAlive(pid)).toBe(false);
    await codeExecutor.files.remove("pid.done");
  });
});

async function appears(path: string): Promise<string> {
  const read = (): Promise<string> => readFile(path, "utf8").catch(() => "");
  await expect.poll(read, { timeout: 60_000 }).toMatch(/^\d+$/);
  return read();
}
