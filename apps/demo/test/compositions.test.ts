import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { AssistantAgent, CodeExecutorAgent, CodeExecutorTool } from "@fenced/agentchat";
import { codeExecutionTool, fileTools, harnessSandbox, sandboxSession } from "@fenced/ai-sdk";
import type { CodeExecutor } from "@fenced/core";
import { nodeListener } from "@fenced/core/runtime";
import { eventStreamResponse, readEventStream } from "@fenced/core/web";
import { createE2BHandler } from "@fenced/e2b";
import { openExecutor } from "@fenced/executor-auto";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { createMcpHandler, createMcpServer } from "@fenced/mcp";
import { AISDKChatCompletionClient } from "@fenced/model-ai-sdk";
import { ExecutorPool, ExecutorSessions } from "@fenced/pool";
import { skillsFrom } from "@fenced/skills";
import { type BackendName, needs, nightly } from "@fenced/test-support";
import { type OpenAIServer, type ScriptedAnswer, startOpenAIServer } from "@fenced/test-support/openai-server";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { generateText, stepCountIs, tool, type ToolSet } from "ai";
import { Sandbox } from "e2b";
import { afterAll, describe, expect, it, vi } from "vitest";
import * as z from "zod";

vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);

const code = "print(6 * 7)";
const image = "fenced-test:python";

/** What makes executors: each is new, and started or not as its user gets it. */
interface Source {
  readonly needs: readonly BackendName[];
  readonly make: () => CodeExecutor | Promise<CodeExecutor>;
  /** No programs can be started beside its blocks. */
  readonly isWithoutPrograms?: true;
}

const endings: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const end of endings.toReversed()) await end();
});

function sessionsOf(create: () => CodeExecutor | Promise<CodeExecutor>): () => CodeExecutor {
  const sessions = new ExecutorSessions({ create, maxSessions: 100 });
  endings.push(() => sessions.drain({ graceMs: 0 }));
  let users = 0;
  return () => sessions.executor(`user-${(users += 1)}`);
}

function poolOf(create: () => CodeExecutor | Promise<CodeExecutor>): () => Promise<CodeExecutor> {
  const pool = new ExecutorPool({ create, min: 1, max: 100 });
  endings.push(() => pool.drain({ graceMs: 0 }));
  return async () => (await pool.acquire()).executor;
}

function local(): CodeExecutor {
  return new LocalCommandLineCodeExecutor();
}

function stateful(): LocalCommandLineCodeExecutor {
  const executor = new LocalCommandLineCodeExecutor({ stateful: true });
  endings.push(() => executor.stop());
  return executor;
}

/** Forks of one executor, so that all of them share its place. */
function forks(): () => Promise<CodeExecutor> {
  const origin = stateful();
  return async () => {
    await origin.executeCodeBlocks([{ language: "python", code: "answer = 42" }]);
    return origin.fork();
  };
}

const auto = () => openExecutor("auto", { image, pull: "never" });
const wasm = () => openExecutor("wasm");
const python: readonly BackendName[] = ["python3"];

const sources: Readonly<Record<string, Source>> = {
  "a session": { needs: python, make: sessionsOf(local) },
  "a pool": { needs: python, make: poolOf(local) },
  "a session over a pool": { needs: python, make: sessionsOf(poolOf(local)) },
  auto: { needs: ["docker"], make: auto },
  "auto, on Node alone": { needs: [], make: wasm, isWithoutPrograms: true },
  "a session over auto": { needs: [], make: sessionsOf(wasm), isWithoutPrograms: true },
  "a stateful executor": { needs: python, make: stateful },
  "a session over a stateful one": { needs: python, make: sessionsOf(stateful) },
  "a fork": { needs: python, make: forks() },
  "a session over a fork": { needs: python, make: sessionsOf(forks()) },
};

/** Something that uses an executor. Returns what the model, the client or the page is told. */
interface User {
  readonly use: (executor: CodeExecutor) => Promise<string>;
  readonly tells: string;
  /** It starts programs. */
  readonly needsPrograms?: true;
}

const users: Readonly<Record<string, User>> = {
  codeExecutionTool: {
    tells: "42\n",
    use: (executor) => toldByModel({ execute_code: codeExecutionTool(executor) }, callWith(code)),
  },
  "codeExecutionTool with tools": {
    tells: "13\n",
    use: (executor) => {
      const double = tool({
        description: "Doubles a number.",
        inputSchema: z.object({ n: z.number() }),
        execute: ({ n }) => 2 * n,
      });
      const call = callWith("from functions import double\nprint(double(n=6) + 1)");
      return toldByModel({ execute_code: codeExecutionTool(executor, { tools: { double } }) }, call);
    },
  },
  fileTools: {
    tells: '{"path":"a.txt","bytes":2}',
    use: (executor) => {
      const { write_file } = fileTools(executor);
      const call = { id: "1", name: "write_file", arguments: '{"path":"a.txt","content":"in"}' };
      return toldByModel({ write_file }, { toolCalls: [call] });
    },
  },
  sandboxSession: {
    tells: "42\n",
    needsPrograms: true,
    use: async (executor) => (await sandboxSession(executor).run({ command: "echo 42" })).stdout,
  },
  harnessSandbox: {
    tells: "42\n",
    needsPrograms: true,
    use: async (executor) => {
      const session = await harnessSandbox({ createExecutor: () => executor }).createSession();
      try {
        return (await session.run({ command: "echo 42" })).stdout;
      } finally {
        await session.stop();
      }
    },
  },
  "skills.tools": {
    tells: "42\n",
    use: async (executor) => {
      await using skills = await skillsFrom(await skillFolder());
      const { run_skill_script } = skills.tools(executor, { copy: true, approve: () => ({ approved: true }) });
      if (!run_skill_script) throw new Error("there is no tool that runs scripts");
      const args = JSON.stringify({ name: "counting", script: "count.py" });
      return await toldByModel(
        { run_skill_script },
        { toolCalls: [{ id: "1", name: "run_skill_script", arguments: args }] },
      );
    },
  },
  createE2BHandler: {
    tells: "42\n",
    needsPrograms: true,
    use: async (executor) => {
      const apiKey = `e2b_${"0".repeat(40)}`;
      await using handler = createE2BHandler({ templates: { base: () => executor }, apiKeys: [apiKey] });
      const server = createServer(nodeListener(handler)).listen(0, "127.0.0.1");
      try {
        await once(server, "listening");
        const address = server.address();
        if (address === null || typeof address === "string") throw new Error("the server has no port");
        const url = `http://127.0.0.1:${address.port}`;
        const sandbox = await Sandbox.create("base", { apiKey, apiUrl: url, sandboxUrl: url });
        await sandbox.files.write("code.py", code);
        const { stdout } = await sandbox.commands.run("python3 code.py");
        await sandbox.kill();
        return stdout;
      } finally {
        server.closeAllConnections();
        server.close();
      }
    },
  },
  createMcpServer: {
    tells: "42\n",
    use: async (executor) => {
      const [clientSide, serverSide] = InMemoryTransport.createLinkedPair();
      const client = new Client({ name: "test", version: "1" });
      const server = createMcpServer(executor);
      await server.connect(serverSide);
      await client.connect(clientSide);
      const told = await callOver(client);
      await client.close();
      return told;
    },
  },
  createMcpHandler: {
    tells: "42\n",
    use: async (executor) => {
      const handler = createMcpHandler({ authenticate: () => "ann", createExecutor: () => executor });
      const send = (url: string | URL, init?: RequestInit) => handler(new Request(url, init));
      const transport = new StreamableHTTPClientTransport(new URL("http://localhost/mcp"), { fetch: send });
      const client = new Client({ name: "test", version: "1" });
      await client.connect(transport);
      const told = await callOver(client);
      await client.close();
      await handler.close();
      return told;
    },
  },
  CodeExecutorAgent: {
    tells: "42\n",
    use: async (executor) => {
      const agent = new CodeExecutorAgent({ name: "runner", codeExecutor: executor });
      const { messages } = await agent.run({ task: `\`\`\`python\n${code}\n\`\`\`` });
      return z.object({ content: z.string() }).parse(messages.at(-1)).content;
    },
  },
  "AssistantAgent with CodeExecutorTool": {
    tells: "42\n",
    use: async (executor) => {
      await using server = await startOpenAIServer([callWith(code), { text: "done" }]);
      const modelClient = new AISDKChatCompletionClient({ model: modelOf(server) });
      const tools = [new CodeExecutorTool(executor)];
      await new AssistantAgent({ name: "analyst", modelClient, tools, reflectOnToolUse: true }).run({ task: "Go." });
      expectDescribed(server);
      return toolMessage(server);
    },
  },
  eventStreamResponse: {
    tells: "42\n",
    use: async (executor) => {
      const blocks = [{ language: "python", code }];
      const response = eventStreamResponse((signal) => executor.streamCodeBlocks(blocks, { signal }));
      let told = "";
      for await (const event of readEventStream(response)) {
        if ("type" in event && event.type === "result" && "result" in event) told = JSON.stringify(event.result);
      }
      return z.object({ output: z.string() }).parse(JSON.parse(told)).output;
    },
  },
};

/** A folder with a skill that has a script. */
async function skillFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "fenced-skills-"));
  endings.push(() => rm(folder, { recursive: true }));
  await mkdir(path.join(folder, "counting"));
  const heading = "---\nname: counting\ndescription: Counts.\n---\n";
  await writeFile(path.join(folder, "counting", "SKILL.md"), `${heading}Run count.py.\n`);
  await writeFile(path.join(folder, "counting", "count.py"), `${code}\n`);
  return folder;
}

function modelOf({ baseURL }: OpenAIServer) {
  return createOpenAICompatible({ name: "test", baseURL })("test-model");
}

function callWith(text: string): ScriptedAnswer {
  const args = JSON.stringify({ language: "python", code: text });
  return { toolCalls: [{ id: "1", name: "execute_code", arguments: args }] };
}

/** What the model is told about a call of a tool. */
async function toldByModel(tools: ToolSet, call: ScriptedAnswer): Promise<string> {
  await using server = await startOpenAIServer([call, { text: "done" }]);
  const stopWhen = stepCountIs(2);
  await generateText({ model: modelOf(server), tools, stopWhen, prompt: "Go.", maxRetries: 0 });
  if ("execute_code" in tools) expectDescribed(server);
  return toolMessage(server);
}

/** The first request already tells the model which languages there are. */
function expectDescribed({ requests }: OpenAIServer): void {
  const offered = JSON.stringify(requests[0]?.body.tools?.[0]?.function);
  expect(offered).toMatch(/Languages: [^.]*python/);
  expect(offered).toMatch(/survive/);
}

function toolMessage({ requests }: OpenAIServer): string {
  return String(requests[1]?.body.messages.findLast(({ role }) => role === "tool")?.content);
}

async function callOver(client: Client): Promise<string> {
  const { tools } = await client.listTools();
  expect(JSON.stringify(tools)).toMatch(/Languages: [^.]*python/);
  const result = await client.callTool({ name: "run_code", arguments: { language: "python", code } });
  return z.object({ content: z.tuple([z.object({ text: z.string() })]) }).parse(result).content[0].text;
}

function isComposed(source: Source, user: User): boolean {
  return source.isWithoutPrograms !== true || user.needsPrograms !== true;
}

for (const [row, [name, source]] of Object.entries(sources).entries()) {
  describe(`with ${name}`, needs(...source.needs), () => {
    for (const [column, [title, user]] of Object.entries(users).entries()) {
      if (!isComposed(source, user)) continue;
      // Each source and each user is in a third of its pairs: what breaks one of them breaks several of these.
      it(`in ${title}`, (row + column) % 3 === 0 ? {} : nightly, async () => {
        const executor = await source.make();
        try {
          expect(await user.use(executor)).toBe(user.tells);
        } finally {
          await executor.stop();
        }
      });
    }
  });
}

it("docs/compositions.md shows exactly these pairs", () => {
  const docs = readFileSync(new URL("../../../docs/compositions.md", import.meta.url), "utf8");
  const [table = ""] = /^\| executor [^]*?\n\n/m.exec(`${docs}\n\n`) ?? [];
  const rows = table.trim().split("\n");
  const cells = rows.map((row) =>
    row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  const [heads = [], , ...lines] = cells;
  expect(heads.slice(1).map((head) => head.replaceAll("`", ""))).toEqual(Object.keys(users));
  const expected = Object.entries(sources).map(([name, source]) => [
    name,
    ...Object.values(users).map((user) => (isComposed(source, user) ? "✓" : "–")),
  ]);
  expect(lines).toEqual(expected);
});
