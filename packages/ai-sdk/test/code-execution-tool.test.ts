import { existsSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FunctionWithRequirements, InvalidInputError } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { isAlive } from "@fenced/test-support/is-alive";
import { startOpenAIServer } from "@fenced/test-support/openai-server";
import { generateText, type ModelMessage, stepCountIs, streamText } from "ai";
import { describe, expect, it, onTestFinished } from "vitest";
import { codeExecutionTool, type CodeExecutionToolOptions } from "../src/index.ts";
import { callWith, modelOf, toolMessage } from "./support/model.ts";

process.removeAllListeners("warning");

const prompt = "Compute it.";
const stopWhen = stepCountIs(3);

function localExecutor(options: ConstructorParameters<typeof LocalCommandLineCodeExecutor>[0] = {}) {
  const executor = new LocalCommandLineCodeExecutor(options);
  onTestFinished(() => executor.stop());
  return executor;
}

/** Has the model call the tool with some code; returns the tool's output and what the model was told. */
async function runCode(code: string, options: CodeExecutionToolOptions = {}, executor = localExecutor()) {
  await using server = await startOpenAIServer([callWith(code), { text: "done" }]);
  const tools = { execute_code: codeExecutionTool(executor, options) };
  const { text, steps } = await generateText({ model: modelOf(server), tools, stopWhen, prompt, maxRetries: 0 });
  expect(text).toBe("done");
  const output = steps[0]?.toolResults[0]?.output;
  return { output, told: toolMessage(server), steps, offered: server.requests[0]?.body.tools?.[0]?.function };
}

describe("generateText", needs("python3"), () => {
  it("runs the code and tells the model what it printed", async () => {
    const { output, told } = await runCode("print(6 * 7)");
    expect(told).toBe("42\n");
    expect(output).toEqual({
      status: "finished",
      exitCode: 0,
      output: "42\n",
      truncated: false,
      timedOut: false,
      stateLost: false,
      durationMs: expect.any(Number),
      images: [],
      text: "42\n",
    });
  });

  it("tells the model which languages and functions there are", async () => {
    const twice = FunctionWithRequirements.fromString(
      'def twice(n: int) -> int:\n    """Doubles n."""\n    return 2 * n\n',
    );
    const executor = localExecutor({ functions: [twice] });
    await executor.start();
    const { offered, told } = await runCode("from functions import twice\nprint(twice(4))", {}, executor);
    expect(offered).toMatchObject({
      description: expect.stringMatching(/^Runs code .*python.*Each call starts afresh.*def twice\(n: int\) -> int:/s),
      parameters: { properties: { language: { enum: executor.capabilities.languages } } },
    });
    expect(told).toBe("8\n");
  });

  it("tells the model how a program failed", async () => {
    const { output, told } = await runCode("print('so far', flush=True); raise SystemExit(3)");
    expect(told).toBe("The code failed with exit code 3. Its output:\nso far\n");
    expect(output).toMatchObject({ exitCode: 3, output: "so far\n" });
  });

  it("kills code after timeoutMs, and cuts output to maxOutputCharacters", async () => {
    const code = "print('x' * 5000, flush=True)\nimport time\ntime.sleep(600)";
    const limited = (timeoutMs: number) => runCode(code, { timeoutMs, maxOutputCharacters: 100 });
    let timeoutMs = 3000;
    let { output, told } = await limited(timeoutMs);
    // A busy machine may need longer to begin.
    while (!String(told).includes("x") && timeoutMs < 60_000) {
      timeoutMs *= 2;
      ({ output, told } = await limited(timeoutMs));
    }
    expect(output).toMatchObject({ exitCode: 124, timedOut: true, truncated: true });
    expect(told).toMatch(
      /^The code timed out after .* s and was killed \(exit code 124\)\. Its output:\nx{50}\n\[\.\.\. 4901 characters left out \.\.\.\]\nx{49}\n\nThe output was longer/,
    );
  });

  it("offers only the given languages, by any of their names", async () => {
    const { offered, told } = await runCode("print(1)", { languages: ["py"], description: "Computes." });
    expect(offered).toMatchObject({
      description: "Computes.",
      parameters: { properties: { language: { enum: ["python"] } } },
    });
    expect(told).toBe("1\n");
  });

  it("returns an error to the model if it asks for another language", async () => {
    await using server = await startOpenAIServer([
      callWith("p 1", "ruby"),
      callWith("print(1)", "Py"),
      { text: "done" },
    ]);
    const tools = { execute_code: codeExecutionTool(localExecutor(), { languages: ["python"] }) };
    const { steps } = await generateText({ model: modelOf(server), tools, stopWhen, prompt });
    expect(toolMessage(server)).toContain("python");
    expect(steps[0]?.content).toContainEqual(expect.objectContaining({ type: "tool-error" }));
    expect(steps[1]?.toolResults[0]?.output).toMatchObject({ output: "1\n" });
  });

  it("turns a broken session into a tool error, and continues", async () => {
    const broken = FunctionWithRequirements.fromString("def broken():\n    pass\n", {
      globalImports: ["no_such_module_anywhere"],
    });
    const { told, steps } = await runCode("print(1)", {}, localExecutor({ functions: [broken] }));
    expect(told).toContain("no_such_module_anywhere");
    expect(steps[0]?.content).toContainEqual(expect.objectContaining({ type: "tool-error" }));
  });

  it("waits for approval", async () => {
    const directory = await temporaryDirectory();
    await using server = await startOpenAIServer([callWith("open('ran', 'w').close()"), { text: "done" }]);
    const options = { needsApproval: ({ code }: { code: string }) => code.includes("open") };
    const tools = { execute_code: codeExecutionTool(localExecutor({ workDir: directory }), options) };
    const messages: ModelMessage[] = [{ role: "user", content: prompt }];
    const asked = await generateText({ model: modelOf(server), tools, stopWhen, messages });
    const request = asked.content.find((part) => part.type === "tool-approval-request");
    expect(request?.toolCall.input).toEqual({ language: "python", code: "open('ran', 'w').close()" });
    expect(existsSync(join(directory, "ran"))).toBe(false);

    const approvalId = request?.approvalId ?? "";
    messages.push(...asked.response.messages, {
      role: "tool",
      content: [{ type: "tool-approval-response", approvalId, approved: true }],
    });
    const { text } = await generateText({ model: modelOf(server), tools, stopWhen, messages });
    expect(text).toBe("done");
    expect(existsSync(join(directory, "ran"))).toBe(true);
  });
});

describe("streamText", needs("python3"), () => {
  it("shows output while the code runs", async () => {
    const directory = await temporaryDirectory();
    const code =
      "import os, time\nprint('one', flush=True)\nwhile not os.path.exists('go'): time.sleep(.02)\nprint('two')";
    await using server = await startOpenAIServer([callWith(code), { text: "done" }]);
    const tools = { execute_code: codeExecutionTool(localExecutor({ workDir: directory })) };
    const { fullStream } = streamText({ model: modelOf(server), tools, stopWhen, prompt });
    const running: string[] = [];
    const finished: unknown[] = [];
    for await (const part of fullStream) {
      if (part.type !== "tool-result" || part.dynamic === true) continue;
      if (part.output.status === "running") running.push(part.output.output);
      else if (part.preliminary !== true) finished.push(part.output.output);
      writeFileSync(join(directory, "go"), "");
    }
    // Python may write the line end separately.
    expect(running[0]).toMatch(/^one\n?$/);
    expect(finished).toEqual(["one\ntwo\n"]);
    expect(toolMessage(server)).toBe("one\ntwo\n");
  });

  it("shows at most maxProgressCharacters", async () => {
    const directory = await temporaryDirectory();
    const code =
      "import os, time\nprint('x' * 100000 + 'end', flush=True)\nwhile not os.path.exists('go'): time.sleep(.02)";
    await using server = await startOpenAIServer([callWith(code), { text: "done" }]);
    const options = { maxProgressCharacters: 10, progressIntervalMs: 1 };
    const tools = { execute_code: codeExecutionTool(localExecutor({ workDir: directory }), options) };
    const { fullStream } = streamText({ model: modelOf(server), tools, stopWhen, prompt });
    const running: string[] = [];
    for await (const part of fullStream) {
      if (part.type === "tool-result" && part.dynamic !== true && part.output.status === "running") {
        running.push(part.output.output);
        if (part.output.output.endsWith("end\n")) writeFileSync(join(directory, "go"), "");
      }
    }
    expect(running.at(-1)).toBe("…xxxxxxend\n");
  });

  it("shows a progress bar as a terminal shows it", async () => {
    const directory = await temporaryDirectory();
    const code = `import os, sys, time
print("loading", flush=True)
for n in range(1, 101): sys.stdout.write(f"\\r\\x1b[32m{n}%\\x1b[0m |{'#' * n}")
sys.stdout.flush()
while not os.path.exists('go'): time.sleep(.02)
print("\\ndone")`;
    await using server = await startOpenAIServer([callWith(code), { text: "done" }]);
    const options = { maxProgressCharacters: 200, progressIntervalMs: 1 };
    const tools = { execute_code: codeExecutionTool(localExecutor({ workDir: directory }), options) };
    const { fullStream } = streamText({ model: modelOf(server), tools, stopWhen, prompt });
    const running: string[] = [];
    for await (const part of fullStream) {
      if (part.type !== "tool-result" || part.dynamic === true || part.output.status !== "running") continue;
      running.push(part.output.output);
      if (part.output.output.includes("100%")) writeFileSync(join(directory, "go"), "");
    }
    expect(
      running.filter((shown) => !/^loading(?:\n|\n\d+% \|#+|\n100% \|#{100}\n(?:done\n?)?)?$/.test(shown)),
    ).toEqual([]);
    expect(running.some((shown) => /100% \|#{100}/.test(shown))).toBe(true);
  });

  it("kills running code when it is aborted", async () => {
    const code = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)";
    await using server = await startOpenAIServer([callWith(code)]);
    const executor = localExecutor();
    const controller = new AbortController();
    const tools = { execute_code: codeExecutionTool(executor) };
    const abortSignal = controller.signal;
    const { fullStream } = streamText({ model: modelOf(server), tools, stopWhen, prompt, abortSignal });
    let pid = 0;
    for await (const part of fullStream) {
      // Python may write the line end separately.
      if (part.type !== "tool-result" || part.dynamic === true || pid > 0) continue;
      pid = Number(part.output.output);
      expect(isAlive(pid)).toBe(true);
      controller.abort();
    }
    await expect.poll(() => isAlive(pid), { timeout: 60_000 }).toBe(false);
    expect(server.requests).toHaveLength(1);
  });
});

describe("codeExecutionTool", () => {
  it("rejects invalid options", () => {
    const executor = localExecutor();
    expect(() => codeExecutionTool(executor, { maxImages: -1 })).toThrow(InvalidInputError);
    expect(() => codeExecutionTool(executor, { maxOutputCharacters: 1.5 })).toThrow(/"maxOutputCharacters" is 1.5/);
    expect(() => codeExecutionTool(executor, { progressIntervalMs: 2 ** 31 })).toThrow(/from 0 to 2147483647/);
    const misspelt = Object.assign({ maxImages: 1 }, { needApproval: true });
    expect(() => codeExecutionTool(executor, misspelt)).toThrow(/"needApproval"\. Did you mean "needsApproval"\?/);
    expect(() => codeExecutionTool(executor, { languages: ["cobol"] })).toThrow(/none of the languages cobol/);
  });
});

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}
