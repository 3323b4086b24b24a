// Gives a model a folder of Agent Skills, and asks a person before the scripts of one of them run behind a fence.
// needs: python3, bubblewrap
import assert from "node:assert/strict";
// #region skills
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { skillsFrom } from "@fenced/skills";
import { generateText, stepCountIs } from "ai";
// #endregion
import { startOpenAIServer } from "./support/model-server.ts";

const run = { name: "word-count", script: "scripts/count.py", stdin: "the cat and the dog" };
await using server = await startOpenAIServer([
  { toolCalls: [{ id: "1", name: "load_skill", arguments: JSON.stringify({ name: "word-count" }) }] },
  { toolCalls: [{ id: "2", name: "run_skill_script", arguments: JSON.stringify(run) }] },
  { text: "Five words." },
]);
Object.assign(process.env, { OPENAI_BASE_URL: server.baseURL });
process.chdir(import.meta.dirname);
const asked: string[] = [];
const { log } = console;
console.log = (line: string) => {
  asked.push(line);
  log(line);
};

// #region skills
const service = createOpenAICompatible({ name: "service", baseURL: process.env["OPENAI_BASE_URL"] ?? "" });
await using skills = await skillsFrom("skills");
for (const { path, message } of skills.warnings) console.warn(path, message);
await using executor = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", readable: [skills.directory] });

const { text, steps } = await generateText({
  model: service("qwen3"),
  tools: skills.tools(executor, {
    approve: ({ skill, script, changed }) => {
      console.log(`${skill.name}, ${changed ? "which has changed" : "new"}, wants to run ${script}`);
      return { approved: true }; // ask a person here
    },
  }),
  stopWhen: stepCountIs(5),
  prompt: 'How many words are in "the cat and the dog"?',
});
// #endregion

assert.equal(text, "Five words.");
const outputs = steps.flatMap(({ toolResults }) => toolResults.map(({ output }): unknown => output));
assert.match(String(outputs[0]), /# Count words/);
assert.equal(outputs[1], "5 the\n");
assert.deepEqual(asked, ["word-count, new, wants to run scripts/count.py"]);
