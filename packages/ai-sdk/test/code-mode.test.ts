import { hostFunction, type HostCall, InvalidInputError } from "@fenced/core";
import { DockerCommandLineCodeExecutor } from "@fenced/executor-docker";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { startOpenAIServer } from "@fenced/test-support/openai-server";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { codeExecutionTool, type CodeExecutionOutput, type WaitingCall } from "../src/index.ts";
import { callWith, modelOf, toolMessage } from "./support/model.ts";
import { PictureExecutor } from "./support/picture-executor.ts";

process.removeAllListeners("warning");

const prompt = "Compute it.";
const stopWhen = stepCountIs(3);

function localExecutor(options: ConstructorParameters<typeof LocalCommandLineCodeExecutor>[0] = {}) {
  const executor = new LocalCommandLineCodeExecutor(options);
  onTestFinished(() => executor.stop());
  return executor;
}

describe("tools that code calls", needs("python3"), () => {
  it("run with the call's options, and the model gets their signatures and the code's output", async () => {
    const seen: { readonly toolCallId: string; readonly messages: unknown; readonly abortSignal?: unknown }[] = [];
    const tools = {
      "get-weather": tool({
        description: "The weather in a city.",
        inputSchema: z.object({ city: z.string(), days: z.int().default(2) }),
        outputSchema: z.object({ celsius: z.number() }),
        execute: ({ city, days }, options) => {
          seen.push(options);
          return { celsius: city.length * days };
        },
      }),
      count: tool({
        description: "Counts.",
        inputSchema: jsonSchema<{ to: number }>({
          type: "object",
          properties: { to: { type: "integer" } },
          required: ["to"],
        }),
        async *execute({ to }) {
          for (let number = 1; number <= to; number += 1) yield number;
        },
      }),
      fail: tool({
        inputSchema: z.object({}),
        execute: (): string => {
          throw new RangeError("No such thing in /etc/secret.");
        },
      }),
    };
    const own = hostFunction({ name: "own", description: "", input: { type: "object" }, execute: () => "own" });
    const executor = localExecutor({ functions: [own] });
    await executor.start();
    const code = `from functions import count, fail, get_weather, own, HostFunctionError
print(get_weather(city="Oslo")["celsius"], count(3), own())
for wrong in (lambda: get_weather(city=1), fail):
    try:
        wrong()
    except HostFunctionError as error:
        print(error)
`;
    await using server = await startOpenAIServer([callWith(code), { text: "done" }]);
    const execute_code = codeExecutionTool(executor, { tools });
    await generateText({ model: modelOf(server), tools: { execute_code }, stopWhen, prompt });
    const [first, wrong, failed] = String(toolMessage(server)).split("\n");
    expect(first).toBe("8 3 own");
    expect(wrong).toMatch(/^ArgumentError: get_weather: "city": /);
    expect(failed).toBe("RangeError: No such thing in <path>");
    const { description } = server.requests[0]?.body.tools?.[0]?.function ?? {};
    expect(description).toMatch(/Import them from the module `functions`/);
    expect(description).toMatch(/def get_weather\(city: str, days: int = \.\.\.\) -> GetWeatherResult:/);
    expect(description).toMatch(/declare function count\(input: \{ to: number \}\): Promise<unknown>;/);
    expect(description).toMatch(/def own\(/);
    expect(seen).toHaveLength(1);
    const messages = [{ role: "user", content: prompt }];
    expect(seen[0]).toMatchObject({ messages, abortSignal: expect.any(AbortSignal) });
    expect(seen[0]?.toolCallId).toMatch(/^[\da-f-]{36}$/);
  });

  it("wait for live approval, which is shown in the stream and gets the result of needsApproval", async () => {
    const deleted: number[] = [];
    const remove = tool({
      inputSchema: z.object({ id: z.int() }),
      needsApproval: ({ id }) => id > 1,
      execute: ({ id }) => deleted.push(id),
    });
    const answers = new Map<string, (approved: boolean) => void>();
    const asked: HostCall[] = [];
    const approveHostCall = async (call: HostCall) => {
      asked.push(call);
      if (!call.needsApproval) return { approved: true };
      const approved = await new Promise<boolean>((resolve) => {
        answers.set(call.callId, resolve);
      });
      return { approved, reason: "said the page" };
    };
    const code = `from functions import remove, HostFunctionError
remove(1)
remove(2)
try:
    remove(3)
except HostFunctionError as error:
    print(error)
`;
    await using server = await startOpenAIServer([callWith(code), { text: "done" }]);
    const options = { tools: { remove }, approveHostCall, progressIntervalMs: 1 };
    const execute_code = codeExecutionTool(localExecutor(), options);
    const shown = new Map<string, WaitingCall>();
    const { fullStream } = streamText({ model: modelOf(server), tools: { execute_code }, stopWhen, prompt });
    for await (const part of fullStream) {
      if (part.type !== "tool-result" || part.dynamic === true) continue;
      for (const call of waitingIn(part.output)) {
        shown.set(call.input, call);
        answers.get(call.callId)?.(call.input === '{"id":2}');
      }
    }
    expect(toolMessage(server)).toBe("NotApprovedError: The call was not approved: said the page\n");
    expect(deleted).toEqual([1, 2]);
    expect([...shown.keys()]).toEqual(expect.arrayContaining(['{"id":2}', '{"id":3}']));
    const expected = [false, true, true].map((needsApproval, at) => ({
      name: "remove",
      input: { id: at + 1 },
      needsApproval,
    }));
    expect(asked).toMatchObject(expected);
  });

  it("are aborted with the response", async () => {
    let reason: unknown;
    const controller = new AbortController();
    const wait = tool({
      inputSchema: z.object({}),
      execute: async (_, { abortSignal }) => {
        const aborted = new Promise<void>((resolve) => {
          abortSignal?.addEventListener("abort", () => resolve());
        });
        controller.abort();
        await aborted;
        reason = abortSignal?.reason;
      },
    });
    await using server = await startOpenAIServer([callWith("from functions import wait\nwait()")]);
    const tools = { execute_code: codeExecutionTool(localExecutor(), { tools: { wait } }) };
    const abortSignal = controller.signal;
    await streamText({ model: modelOf(server), tools, stopWhen, prompt, abortSignal }).consumeStream();
    await expect.poll(() => reason, { timeout: 60_000 }).toBeInstanceOf(Error);
    expect(server.requests).toHaveLength(1);
  });
});

describe("codeExecutionTool with tools", () => {
  it("rejects tools that its code cannot call", () => {
    const inputSchema = z.object({});
    const execute = () => 1;
    const make =
      (options: object, executor = localExecutor()) =>
      () =>
        codeExecutionTool(executor, options);
    expect(make({ tools: { page: { inputSchema } } })).toThrow(/The tool page has no `execute`/);
    const needing = { tools: { pay: { inputSchema, execute, needsApproval: true } } };
    expect(make(needing)).toThrow(InvalidInputError);
    expect(make(needing)).toThrow(/The tool pay needs approval, .* Pass `approveHostCall` to codeExecutionTool, or/);
    const pictures = () => codeExecutionTool(new PictureExecutor({}), { tools: { pay: { inputSchema, execute } } });
    expect(pictures).toThrow(/cannot call host functions/);
    expect(make({ tools: [] })).toThrow(/must be an object of tools by name/);
  });
});

describe("a network policy", needs("docker"), () => {
  it("reports its refusals in the result", async () => {
    const executor = new DockerCommandLineCodeExecutor({
      image: "fenced-test:python",
      pull: "never",
      network: { allow: ["allowed.example"] },
    });
    onTestFinished(() => executor.stop());
    const code = "import urllib.request\nurllib.request.urlopen('http://refused.example/')";
    await using server = await startOpenAIServer([callWith(code), { text: "done" }]);
    const tools = { execute_code: codeExecutionTool(executor) };
    const { steps } = await generateText({ model: modelOf(server), tools, stopWhen, prompt });
    const reason = "refused.example is not in this executor's network policy";
    expect(steps[0]?.toolResults[0]?.output).toMatchObject({
      network: [{ allowed: false, protocol: "http", host: "refused.example", port: 80, reason }],
    });
    expect(toolMessage(server)).toContain(reason);
  });
});

function waitingIn(output: CodeExecutionOutput): readonly WaitingCall[] {
  return output.status === "running" ? (output.waitingCalls ?? []) : [];
}
