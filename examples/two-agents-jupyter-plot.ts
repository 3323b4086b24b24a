// Two agents make a plot: one writes code, the other runs it in a Jupyter kernel, and the first one sees the image.
// needs: jupyter
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
// #region plot
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  AssistantAgent,
  CodeExecutorAgent,
  MaxMessageTermination,
  renderToConsole,
  RoundRobinGroupChat,
  TextMentionTermination,
} from "@fenced/agentchat";
import { JupyterCodeExecutor, LocalJupyterServer } from "@fenced/executor-jupyter";
import { AISDKChatCompletionClient } from "@fenced/model-ai-sdk";
// #endregion
import { startOpenAIServer } from "@fenced/test-support/openai-server";
import { enterTemporaryDirectory } from "./support/enter-temporary-directory.ts";

enterTemporaryDirectory();
const first = "values = [n ** 2 for n in range(20)]\nprint(len(values), 'values')";
const second = "import matplotlib.pyplot as plt\nplt.plot(values)\nplt.title('squares')\nplt.show()";
await using model = await startOpenAIServer([
  { text: [`The values first:\n\n\`\`\`python\n${first}\n\`\`\`\n`] },
  { text: [`They are still there, so I plot them:\n\n\`\`\`python\n${second}\n\`\`\`\n`] },
  { text: ["The plot shows a parabola. TERMINATE"] },
]);
Object.assign(process.env, { OPENAI_BASE_URL: model.baseURL });

// #region plot
const baseURL = process.env.OPENAI_BASE_URL ?? "http://localhost:11434/v1";
const service = createOpenAICompatible({ name: "service", baseURL, includeUsage: true });
const modelClient = new AISDKChatCompletionClient({ model: service("qwen3-vl") });
await using server = new LocalJupyterServer();
await using codeExecutor = new JupyterCodeExecutor({ server, outputDir: "plots" });

const systemMessage =
  "Write Python in a fence marked python: it runs in a Jupyter kernel that keeps variables. Say TERMINATE when done.";
const coder = new AssistantAgent({ name: "coder", modelClient, systemMessage });
const runner = new CodeExecutorAgent({ name: "runner", codeExecutor, sources: ["coder"] });
const done = new TextMentionTermination("TERMINATE", { sources: ["coder"], unlessCode: true });
const terminationCondition = new MaxMessageTermination(10).or(done);
const team = new RoundRobinGroupChat({ participants: [coder, runner], terminationCondition });
const { stopReason } = await renderToConsole(team.runStream({ task: "Plot the squares of 0 to 19." }));
// #endregion

assert.equal(stopReason, '"coder" mentioned "TERMINATE".');
const plot = await codeExecutor.executeCodeBlocks([{ language: "python", code: "plt.plot(values)\nplt.show()" }]);
const file = plot.displays[0]?.files[0] ?? "";
assert.equal((await readFile(file)).subarray(1, 4).toString(), "PNG");
