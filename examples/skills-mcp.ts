// Offers a folder of Agent Skills over MCP, next to code execution, and has the client ask its user before scripts run.
// needs: python3, bubblewrap
import assert from "node:assert/strict";
// #region server
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { createMcpServer } from "@fenced/mcp";
import { skillsFrom } from "@fenced/skills";
// #endregion
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

process.chdir(import.meta.dirname);

// #region server
await using skills = await skillsFrom("skills");
await using executor = new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", readable: [skills.directory] });
const server = createMcpServer(executor);
const requestedSchema = { type: "object", properties: { run: { type: "boolean", title: "Run it" } } } as const;
const tools = skills.tools(executor, {
  approve: async ({ skill, script, args }) => {
    const message = `Run ${script} of the skill ${skill.name} with ${JSON.stringify(args)}?`;
    const { action, content } = await server.server.elicitInput({ message, requestedSchema });
    return { approved: action === "accept" && content?.["run"] === true };
  },
});
for (const tool of Object.values(tools)) {
  const { name, description, inputSchema } = tool;
  server.registerTool(name, { description, inputSchema: inputSchema.shape }, async (input, { signal }) => ({
    content: [{ type: "text", text: await tool.execute(input, { signal }) }],
  }));
}
// #endregion

const client = new Client({ name: "host", version: "1.0.0" }, { capabilities: { elicitation: {} } });
const asked: string[] = [];
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  asked.push(params.message);
  return { action: "accept", content: { run: true } };
});
const [one, other] = InMemoryTransport.createLinkedPair();
await Promise.all([server.connect(one), client.connect(other)]);

const offered = (await client.listTools()).tools.map(({ name }) => name);
assert.ok(offered.includes("run_code") && offered.includes("load_skill"));
const input = { name: "word-count", script: "scripts/count.py", stdin: "the cat and the dog" };
for (let count = 0; count < 2; count += 1) {
  const result = await client.callTool({ name: "run_skill_script", arguments: input });
  console.log(result.content);
  assert.deepEqual(result.content, [{ type: "text", text: "5 the\n" }]);
}
assert.deepEqual(asked, ["Run scripts/count.py of the skill word-count with []?"]);
await client.close();
await server.close();
