import { BackendUnavailableError, ComponentError } from "@fenced/core";
import { describe, expect, it, vi } from "vitest";
import {
  type ApprovalRequest,
  CodeExecutorAgent,
  messageToText,
  textMessage,
  toolCallSummaryMessage,
} from "../../src/index.ts";
import { python } from "../support/python.ts";
import { codeResult, ScriptedExecutor } from "../support/scripted-executor.ts";

function say(content: string, source: string = "coder"): ReturnType<typeof textMessage> {
  return textMessage({ source, content });
}

const png = new Uint8Array([1, 2, 3]);
const plot = { data: { "image/png": png, "text/plain": "<Figure>" }, files: ["/work/plot.png"] };

describe("CodeExecutorAgent without a model", () => {
  it("runs the blocks of all text messages and answers with the output", async () => {
    const codeExecutor = new ScriptedExecutor([codeResult({ output: "one\ntwo\n" })]);
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor });
    const { chatMessage, innerMessages } = await agent.onMessages([
      say(`First\n\n${python("print('one')")}`),
      say(python("print('two')")),
      toolCallSummaryMessage({ source: "coder", content: python("no()"), toolCalls: [], results: [] }),
    ]);
    expect(chatMessage).toMatchObject({ type: "TextMessage", source: "runner", content: "one\ntwo\n" });
    expect(chatMessage.metadata).toEqual({ exitCode: "0" });
    expect(innerMessages).toEqual([]);
    expect(codeExecutor.given[0]?.map(({ code }) => code.trim())).toEqual(["print('one')", "print('two')"]);
  });

  it("runs only blocks in languages that the started executor supports", async () => {
    const codeExecutor = new ScriptedExecutor();
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor });
    await agent.onMessages([say("```json\n{}\n```\n```Py\na\n```\n```shell\nb\n```\n```\nc\n```\n```ruby\nd\n```")]);
    expect(codeExecutor.given[0]?.map(({ language }) => language)).toEqual(["Py", "shell"]);
  });

  it("runs only supportedLanguages, by any of their names", async () => {
    const codeExecutor = new ScriptedExecutor();
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor, supportedLanguages: ["Python3", "cobol"] });
    await agent.onMessages([say("```sh\na\n```\n```py\nb\n```")]);
    expect(codeExecutor.given[0]).toHaveLength(1);
    const { chatMessage } = await agent.onMessages([say("```sh\na\n```")]);
    expect(chatMessage.content).toContain("Blocks in sh are not run here.");
    expect(chatMessage.content).toContain("Languages that run here: python.");
  });

  it("explains how to write code if there is none, without a fence that another agent would run", async () => {
    const codeExecutor = new ScriptedExecutor();
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor });
    const { chatMessage } = await agent.onMessages([say("hello")]);
    expect(chatMessage.type).toBe("TextMessage");
    expect(chatMessage.content).toContain("There is no code block to run.");
    expect(codeExecutor.given).toEqual([]);
    await new CodeExecutorAgent({ name: "other", codeExecutor }).onMessages([say(messageToText(chatMessage))]);
    expect(codeExecutor.given).toEqual([]);
  });

  it("runs only code from its sources", async () => {
    const codeExecutor = new ScriptedExecutor();
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor, sources: ["coder"] });
    await agent.onMessages([say(python("evil()"), "web"), say(python("good()"))]);
    expect(codeExecutor.given.flat().map(({ code }) => code.trim())).toEqual(["good()"]);
  });

  it("answers with images and their paths", async () => {
    const svg = { data: { "image/svg+xml": "<svg/>" }, files: ["/work/a.svg"] };
    const codeExecutor = new ScriptedExecutor([codeResult({ output: "done\n", displays: [plot, svg] })]);
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor });
    const { chatMessage } = await agent.onMessages([say(python("plot()"))]);
    expect(chatMessage).toMatchObject({
      type: "MultiModalMessage",
      content: [
        { type: "text", text: "done\n\nSaved files:\nplot.png\na.svg" },
        { type: "image", url: "data:image/png;base64,AQID", path: "/work/plot.png" },
      ],
    });
  });

  it("lists the files of displays other than images in text", async () => {
    const svg = { data: { "image/svg+xml": "<svg/>" }, files: ["/work/a.svg"] };
    const codeExecutor = new ScriptedExecutor([codeResult({ displays: [svg] })]);
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor });
    expect((await agent.onMessages([say(python("plot()"))])).chatMessage).toMatchObject({
      type: "TextMessage",
      content: "The code ran and printed nothing (exit code 0).\n\nSaved files:\na.svg",
    });
  });

  it("does not stop the executor when it is disposed", async () => {
    const codeExecutor = new ScriptedExecutor();
    {
      await using agent = new CodeExecutorAgent({ name: "runner", codeExecutor });
      await agent.onMessages([say(python("a"))]);
    }
    expect(codeExecutor.stopped).toBe(0);
  });

  it("stops waiting for a starting executor after an abort", async () => {
    const codeExecutor = new ScriptedExecutor();
    const controller = new AbortController();
    codeExecutor.start = () => {
      controller.abort("stop");
      return new Promise(() => {});
    };
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor });
    await expect(agent.onMessages([say(python("a"))], { signal: controller.signal })).rejects.toBe("stop");
    expect(codeExecutor.given).toEqual([]);
  });

  it("rethrows the error of a broken backend", async () => {
    const broken = new BackendUnavailableError("gone", { remedy: "Start it." });
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor: new ScriptedExecutor([broken]) });
    await expect(agent.onMessages([say(python("a"))])).rejects.toBe(broken);
  });
});

describe("CodeExecutorAgent's approvalFunc", () => {
  it("sees all the code before it runs", async () => {
    const codeExecutor = new ScriptedExecutor();
    const seen: ApprovalRequest[] = [];
    const agent = new CodeExecutorAgent({
      name: "runner",
      codeExecutor,
      approvalFunc: (request) => {
        expect(codeExecutor.given).toEqual([]);
        seen.push(request);
        return { approved: true, reason: "fine" };
      },
    });
    await agent.onMessages([say(`${python("a()")}\n\`\`\`\`sh\necho '\`\`\`'\n\`\`\`\``)]);
    expect(seen[0]?.code).toBe("```python\na()\n```\n\n````sh\necho '```'\n````");
    expect(seen[0]?.blocks).toHaveLength(2);
    expect(seen[0]?.context).toMatchObject([{ role: "user", source: "coder" }]);
    expect(codeExecutor.given).toHaveLength(1);
  });

  it("sees control and invisible characters escaped, and the exact source in the blocks", async () => {
    const hidden = "x = 1 # \u001B[8mimport os\u001B[0m\u202E\rrm()\u009B2K\u2028\u{E0041}";
    let seen: ApprovalRequest | undefined;
    const codeExecutor = new ScriptedExecutor();
    const approvalFunc = (request: ApprovalRequest): { approved: boolean; reason: string } => {
      seen = request;
      return { approved: true, reason: "" };
    };
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor, approvalFunc });
    await agent.onMessages([say(python(hidden.replace("\r", "")))]);
    expect(seen?.code).toContain("x = 1 # \\u{1b}[8mimport os\\u{1b}[0m\\u{202e}rm()\\u{9b}2K\\u{2028}\\u{e0041}");
    expect(seen?.blocks).toEqual(codeExecutor.given[0]);
    expect(seen?.blocks[0]?.code).toBe(hidden.replace("\r", ""));
  });

  it("sees code with hundreds of thousands of backticks", async () => {
    let seen = "";
    const approvalFunc = ({ code }: ApprovalRequest): { approved: boolean; reason: string } => {
      seen = code;
      return { approved: true, reason: "" };
    };
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor: new ScriptedExecutor(), approvalFunc });
    await agent.onMessages([say(`~~~python\n${"` ".repeat(200_000)}\n~~~`)]);
    expect(seen).toHaveLength(400_013);
  });

  it("can refuse code with a reason", async () => {
    const codeExecutor = new ScriptedExecutor();
    const approvalFunc = async (): Promise<{ approved: boolean; reason: string }> => ({
      approved: false,
      reason: "it deletes files",
    });
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor, approvalFunc });
    const { chatMessage } = await agent.onMessages([say(python("rm()"))]);
    expect(chatMessage.content).toBe("The code was not run, because it was not approved. Reason: it deletes files");
    expect(codeExecutor.given).toEqual([]);
  });

  it("keeps the code from running if it throws or is aborted", async () => {
    const codeExecutor = new ScriptedExecutor();
    const error = new Error("no judge");
    const throwing = vi.fn<() => never>(() => {
      throw error;
    });
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor, approvalFunc: throwing });
    await expect(agent.onMessages([say(python("a"))])).rejects.toBe(error);

    const controller = new AbortController();
    const waiting = new CodeExecutorAgent({
      name: "runner",
      codeExecutor,
      approvalFunc: (_, { signal }) =>
        new Promise((resolve) => {
          signal?.addEventListener("abort", () => resolve({ approved: true, reason: "too late" }));
          controller.abort("stop");
        }),
    });
    await expect(waiting.onMessages([say(python("a"))], { signal: controller.signal })).rejects.toBe("stop");
    expect(codeExecutor.given).toEqual([]);
  });

  it("keeps the agent from being dumped", () => {
    const approvalFunc = (): { approved: boolean; reason: string } => ({ approved: true, reason: "" });
    const agent = new CodeExecutorAgent({ name: "runner", codeExecutor: new ScriptedExecutor(), approvalFunc });
    expect(() => agent.dumpComponent()).toThrow(/approvalFunc/);
    expect(() => agent.dumpComponent()).toThrow(ComponentError);
  });
});
