import { join } from "node:path";
import { hostFunction } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { describe, expect, it } from "vitest";
import { CodeExecutorAgent, messageToText } from "../../src/index.ts";
import { talk, talkInTerminal } from "../support/in-terminal.ts";
import { python } from "../support/python.ts";
import { ScriptedModel } from "../support/scripted-model.ts";

const program = await bundledCommand(join(import.meta.dirname, "..", "fixtures", "approve-calls-in-terminal.ts"));
const task = `\`\`\`python
import asyncio
from functions import remove, keep, HostFunctionError
for call in (lambda: remove(1), lambda: remove(2), lambda: remove(3), lambda: remove(4)):
    try:
        print(call())
    except HostFunctionError as error:
        print(error)
async def main():
    print(await asyncio.gather(*[keep.aio(id=n) for n in range(3)]))
asyncio.run(main())
\`\`\``;

describe("terminalHostCallApproval", needs("python3"), () => {
  it("asks about each call while the agent's program waits", async () => {
    const keys = ["y\r", "\r", "not that one\r", "\u0004", "all\r"];
    const { output, exitCode } = await talkInTerminal([...program, task], { keys, question: "or what to change] " });
    expect(output).toContain('Call remove({"id":1})? [y/N, a for all calls of remove, or what to change] ');
    expect(output.split("Call keep(")).toHaveLength(2);
    const answer = output.slice(output.lastIndexOf("<")).replaceAll("\r\n", "\n");
    const refused = "NotApprovedError: The call was not approved: The user refused this call.";
    expect(answer).toBe(`<remove 1 done
${refused} Ask what they want, or try another way.
${refused} They said: not that one
${refused} Ask what they want, or try another way.
['keep 0 done', 'keep 1 done', 'keep 2 done']
>
`);
    expect(exitCode).toBe(0);
  });

  it("asks one question at a time, and holds back other output until they are answered", async () => {
    const sideBySide = await bundledCommand(join(import.meta.dirname, "..", "fixtures", "ask-side-by-side.ts"));
    const { output } = await talkInTerminal(sideBySide, { keys: ["y\r", "n\r"], question: "or what to change] " });
    expect(output).toContain("<true,false>");
    expect(output.indexOf('Call remove({"id":1})?')).toBeGreaterThan(output.indexOf("change] y"));
    expect(output.indexOf("Call keep()?")).toBeGreaterThan(output.indexOf("change] n"));
  });

  it("ignores keys typed for a withdrawn question when the next one replaces it", async () => {
    const changing = await bundledCommand(join(import.meta.dirname, "..", "fixtures", "change-the-question.ts"));
    const keys = ["y", "y\r", "n\r"];
    const { output } = await talkInTerminal([...changing, "take back"], { keys, question: "or what to change] " });
    expect(output).toContain("<look taken back,remove false>");
    expect(output).toContain("The question above was withdrawn.");
    expect(output).toContain("This is a new question: read it first.");
  });

  it("ignores keys pressed before the question is shown", async () => {
    const changing = await bundledCommand(join(import.meta.dirname, "..", "fixtures", "change-the-question.ts"));
    const keys = ["y\r", "y\r", "n\r"];
    const { output } = await talkInTerminal(changing, { keys, question: "or what to change] " });
    expect(output).toContain("<look true,remove false>");
  });

  it("accepts no answer from a pipe", async () => {
    const { output, exitCode } = await talk([...program, task], ({ stdin }) => stdin.end("y\n"));
    expect(output).toContain("terminalHostCallApproval needs a terminal, but standard input or output is not one.");
    expect(exitCode).toBe(1);
  });
});

describe("an agent that writes code", needs("python3"), () => {
  it("learns the host functions from the prompt and calls them", async () => {
    const input = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const execute = ({ city }: { readonly city: string }) => city.length;
    const weather = hostFunction({ name: "get_weather", description: "The weather.", input, execute });
    await using codeExecutor = new LocalCommandLineCodeExecutor({ functions: [weather] });
    const code = python("from functions import get_weather\nprint(get_weather(city='Oslo'))");
    const modelClient = new ScriptedModel([code, "It is 4."]);
    const agent = new CodeExecutorAgent({ name: "agent", codeExecutor, modelClient });
    const { messages } = await agent.run({ task: "How warm is it in Oslo?" });
    const [asked] = modelClient.requests;
    expect(JSON.stringify(asked)).toContain("def get_weather(city: str) -> Any:");
    expect(messages.map(messageToText)).toContainEqual("4\n");
  });
});
