import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { needs } from "@fenced/test-support";
import { expect, it } from "vitest";
import { CodeExecutorAgent, CodeExecutorTool, RoundRobinGroupChat } from "../../src/index.ts";
import { python } from "../support/python.ts";
import { ScriptedModel } from "../support/scripted-model.ts";

const printing =
  "import sys\nprint('first')\nfor i in range(20_000): print('a line of output', i, file=[sys.stdout, sys.stderr][i % 2])\nprint('last')";

it("truncates 20,000 lines of output for the model and in the saved state", needs("python3"), async () => {
  await using codeExecutor = new LocalCommandLineCodeExecutor();
  const modelClient = new ScriptedModel([
    `${python(printing)}\n${python("print('second block')")}`,
    "It printed much.",
  ]);
  const agent = new CodeExecutorAgent({ name: "a", modelClient, codeExecutor });
  const team = new RoundRobinGroupChat({ participants: [agent], maxTurns: 1 });
  const { messages } = await team.run({ task: "?" });
  const sent = JSON.stringify(modelClient.requests.at(-1));
  expect(sent).toContain("first");
  expect(sent).toMatch(/characters left out/);
  expect(sent).toContain("second block");
  expect(sent.length).toBeLessThan(40_000);
  expect(JSON.stringify(await team.saveState()).length).toBeLessThan(200_000);
  const event = messages.find(({ type }) => type === "CodeExecutionEvent");
  expect(event).toMatchObject({ result: { truncated: true, exitCode: 0 } });
});

it("truncates to maxOutputCharacters, in agents and in the tool", needs("python3"), async () => {
  await using codeExecutor = new LocalCommandLineCodeExecutor();
  const agent = new CodeExecutorAgent({ name: "a", codeExecutor, maxOutputCharacters: 100 });
  const { messages } = await agent.run({ task: python(printing) });
  expect(JSON.stringify(messages.at(-1)).length).toBeLessThan(600);
  const tool = new CodeExecutorTool(codeExecutor, { maxOutputCharacters: 100 });
  expect((await tool.execute({ language: "python", code: printing }, {})).length).toBeLessThan(600);
});
