import { fileURLToPath } from "node:url";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { AssistantAgent } from "@fenced/agentchat";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { AISDKChatCompletionClient } from "@fenced/model-ai-sdk";
import { needs } from "@fenced/test-support";
import { startOpenAIServer } from "@fenced/test-support/openai-server";
import { generateText, stepCountIs } from "ai";
import { describe, expect, it } from "vitest";
import { skillsFrom } from "../src/index.ts";
import { counting, folderWith } from "./support/skill-folder.ts";

const calls = [
  { id: "1", name: "load_skill", arguments: JSON.stringify({ name: "counting" }) },
  {
    id: "2",
    name: "run_skill_script",
    arguments: JSON.stringify({ name: "counting", script: "scripts/count.py", stdin: "a b c" }),
  },
  { id: "3", name: "run_skill_script", arguments: JSON.stringify({ name: "other", script: "x" }) },
];
const script = [...calls.map((toolCall) => ({ toolCalls: [toolCall] })), { text: "Three." }];

describe("Skills", () => {
  it("are tools of the AI SDK", needs("python3", "bash"), async () => {
    await using skills = await skillsFrom(await folderWith(counting));
    await using executor = new LocalCommandLineCodeExecutor();
    await using server = await startOpenAIServer(script);
    const { text, steps } = await generateText({
      model: createOpenAICompatible({ name: "test", baseURL: server.baseURL })("test-model"),
      tools: skills.tools(executor, { approve: () => ({ approved: true }) }),
      stopWhen: stepCountIs(5),
      prompt: "Count: a b c",
      maxRetries: 0,
    });
    expect(text).toBe("Three.");
    const [loaded, ran] = steps.flatMap(({ toolResults }) => toolResults.map(({ output }): unknown => output));
    expect(loaded).toContain("- scripts/count.py");
    expect(ran).toBe("3 [] True\n");
    const tools = JSON.stringify(server.requests[0]?.body);
    expect(tools).toContain('"enum":["counting"]');
    expect(tools).toContain("- counting: Counts words");
  });

  it("are tools of an AssistantAgent", needs("python3", "bash"), async () => {
    await using skills = await skillsFrom(await folderWith(counting));
    await using executor = new LocalCommandLineCodeExecutor();
    await using server = await startOpenAIServer(script);
    const model = createOpenAICompatible({ name: "test", baseURL: server.baseURL })("test-model");
    const agent = new AssistantAgent({
      name: "assistant",
      modelClient: new AISDKChatCompletionClient({ model }),
      tools: Object.values(skills.tools(executor, { approve: () => ({ approved: true }) })),
      maxToolIterations: 4,
    });
    const { messages } = await agent.run({ task: "Count: a b c" });
    expect(messages.at(-1)).toMatchObject({ content: "Three." });
    const results = messages.flatMap((message) => (message.type === "ToolCallExecutionEvent" ? message.content : []));
    expect(results.map(({ isError }) => isError)).toEqual([false, false, true]);
    expect(results[1]?.content).toBe("3 [] True\n");
  });

  it("include our own", async () => {
    await using skills = await skillsFrom(fileURLToPath(new URL("../../core/skills", import.meta.url)));
    expect(skills.warnings).toEqual([]);
    expect(skills.all.map(({ name }) => name)).toEqual(["fenced"]);
    expect(await skills.tools()["load_skill"]?.execute({ name: "fenced" }, {})).toContain("# Fenced");
  });
});
