import { once } from "node:events";
import { InvalidInputError } from "@fenced/core";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { AssistantAgent, mcpTools, type McpToolsOptions } from "../../src/index.ts";
import { call, ScriptedModel } from "../support/scripted-model.ts";

process.removeAllListeners("warning");

interface Connected {
  readonly client: Client;
  /** Resolves when the server has seen the end of a call of `forever`. */
  readonly aborted: Promise<unknown>;
  readonly started: Promise<unknown>;
}

/** A client of a server with some tools. */
async function connect(): Promise<Connected> {
  const server = new McpServer({ name: "server", version: "1.0.0" });
  const abort = new AbortController();
  const start = new AbortController();
  const text = (value: string) => ({ content: [{ type: "text" as const, text: value }] });
  server.registerTool(
    "weather.get",
    { description: "Says\u{202e} the weather.", inputSchema: { city: z.string() } },
    async ({ city }) => text(`Sunny in ${city}.`),
  );
  server.registerTool("weather_get", {}, async () => text("other"));
  server.registerTool("fail", {}, async () => ({ ...text("The disk is full."), isError: true }));
  server.registerTool("picture", {}, async () => ({
    content: [
      { type: "text", text: "Here:" },
      { type: "image", data: "AAAA", mimeType: "image/png" },
    ],
  }));
  server.registerTool("forever", {}, async ({ signal }) => {
    signal.addEventListener("abort", () => abort.abort());
    start.abort();
    return new Promise(() => {});
  });
  const [one, other] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "test", version: "1.0.0" });
  await Promise.all([server.connect(one), client.connect(other)]);
  onTestFinished(() => client.close());
  return { client, aborted: once(abort.signal, "abort"), started: once(start.signal, "abort") };
}

async function toolsOf(options?: McpToolsOptions) {
  const { client } = await connect();
  return (await mcpTools(client, options)).tools;
}

async function run(name: string, args = {}): Promise<unknown> {
  return (await toolsOf()).find((tool) => tool.name === name)?.execute(args, {});
}

describe("mcpTools", () => {
  it("are tools of an assistant, with names that models accept", async () => {
    const { client } = await connect();
    await using server = await mcpTools(client);
    expect(server.tools.map(({ name }) => name)).toEqual([
      "weather_get",
      "weather_get_2",
      "fail",
      "picture",
      "forever",
    ]);
    const model = new ScriptedModel([[call("weather_get", { city: "Rome" })], "Sunny."]);
    const agent = new AssistantAgent({ name: "a", modelClient: model, tools: server.tools, reflectOnToolUse: true });
    const { messages } = await agent.run({ task: "How is the weather in Rome?" });
    const results = messages.flatMap((message) => (message.type === "ToolCallExecutionEvent" ? message.content : []));
    expect(results).toMatchObject([{ content: "Sunny in Rome.", isError: false }]);
    const [offered] = model.requests[0]?.options.tools ?? [];
    expect(offered?.description).toBe(String.raw`Says\u{202e} the weather.`);
    expect(offered?.parameters).toMatchObject({ type: "object", required: ["city"] });
  });

  it("report failures as errors, and content that is no text by its type", async () => {
    await expect(run("fail")).rejects.toThrow("The disk is full.");
    expect(await run("picture")).toBe("Here:\n[image]");
    // The server's own check of the arguments.
    await expect(run("weather_get", { city: 1 })).rejects.toThrow("city");
  });

  it("can be chosen, and get a prefix", async () => {
    const tools = await toolsOf({ names: ["fail"], prefix: "files_" });
    expect(tools.map(({ name }) => name)).toEqual(["files_fail"]);
    await expect(toolsOf({ names: ["none"] })).rejects.toThrow('no tool "none"');
    await expect(toolsOf({ prefix: "a b" })).rejects.toThrow(InvalidInputError);
  });

  it("show what the words of a schema hide", async () => {
    const city = { type: "string", description: "A\u{200b} city.", title: "T\u{202e}", enum: ["Ro\u{200b}me"] };
    const inputSchema = { type: "object", properties: { city, description: city } };
    const listTools = async () => ({ tools: [{ name: "weather", inputSchema }] });
    const { tools } = await mcpTools({ listTools, callTool: async () => ({}), close: async () => {} });
    const shown = { ...city, description: String.raw`A\u{200b} city.`, title: String.raw`T\u{202e}` };
    expect(tools[0]?.parameters).toEqual({ ...inputSchema, properties: { city: shown, description: shown } });
  });

  it("have names of at most 64 characters, however many are alike", async () => {
    const same = { name: "x".repeat(70), inputSchema: { type: "object" } };
    const listTools = async () => ({ tools: Array.from({ length: 1000 }, () => same) });
    const { tools } = await mcpTools({ listTools, callTool: async () => ({}), close: async () => {} });
    const names = tools.map(({ name }) => name);
    expect(new Set(names).size).toBe(1000);
    expect(Math.max(...names.map(({ length }) => length))).toBe(64);
  });

  it("end a call with its signal, on the server too", async () => {
    const { client, aborted, started } = await connect();
    const { tools } = await mcpTools(client);
    const ending = new AbortController();
    const calling = tools.find(({ name }) => name === "forever")?.execute({}, { signal: ending.signal });
    await started;
    ending.abort(new Error("enough"));
    await expect(calling).rejects.toThrow("enough");
    await aborted;
  });

  it("end a call at its time limit", async () => {
    const tools = await toolsOf({ timeoutMs: 50 });
    const forever = tools.find(({ name }) => name === "forever");
    await expect(forever?.execute({}, {})).rejects.toThrow("did not answer within 50 ms");
  });

  it("close the client at their end", async () => {
    const { client } = await connect();
    const server = await mcpTools(client);
    await server[Symbol.asyncDispose]();
    expect(client.transport).toBeUndefined();
    await expect(server.tools[0]?.execute({ city: "Rome" }, {})).rejects.toThrow("Not connected");
  });

  it("reject what is no client, and a client that lists no tools", async () => {
    await expect(mcpTools({} as never)).rejects.toThrow("must be a connected client of the MCP SDK");
    const { client } = await connect();
    const broken = { listTools: async () => ({ tools: [{}] }), callTool: client.callTool, close: async () => {} };
    await expect(mcpTools(broken as never)).rejects.toThrow("lists no valid tools");
  });
});
