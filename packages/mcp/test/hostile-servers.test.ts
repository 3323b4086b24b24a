import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { boundedFetch } from "../src/connect/bounded-fetch.ts";
import { createMcpServer, type McpTarget } from "../src/index.ts";

const message = z.object({ id: z.number().optional(), method: z.string() });

/** What a server answers a request with; `undefined`: the usual answer; `silence`: nothing, for ever. */
type Answer = (method: string, response: ServerResponse) => object | undefined;

/** The URL of an MCP server over HTTP that gives these answers. */
async function hostileServer(answer: Answer): Promise<string> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      if (request.method !== "POST") {
        response.writeHead(405).end();
        return;
      }
      const { id, method } = message.parse(JSON.parse(Buffer.concat(parts).toString()));
      const result = answer(method, response) ?? usual(method);
      if (response.headersSent || result === silence) return;
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}/mcp`;
}

const silence = {};
const plain = { type: "object" };

function usual(method: string): object {
  if (method === "tools/list") return { tools: [{ name: "ok", inputSchema: plain }] };
  return { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "hostile", version: "1" } };
}

/** What a model is told about the tools of such a server. */
async function description(answer: Answer, connectTimeoutMs = 600_000): Promise<string> {
  return descriptionOf({ url: await hostileServer(answer) }, connectTimeoutMs);
}

async function descriptionOf(target: McpTarget, connectTimeoutMs = 600_000): Promise<string> {
  const executor = new LocalCommandLineCodeExecutor();
  onTestFinished(() => executor.stop());
  const [clientSide, serverSide] = InMemoryTransport.createLinkedPair();
  const server = createMcpServer(executor, { connect: [target], connectTimeoutMs });
  await server.connect(serverSide);
  const client = new Client({ name: "test", version: "1" });
  onTestFinished(() => client.close());
  await client.connect(clientSide);
  const { tools } = await client.listTools();
  return tools[0]?.description ?? "";
}

const late = /^The MCP server http:\S+ did not answer within 2000 ms/;

it("connecting to a server that does not answer notifications times out", async () => {
  const connecting = description((method) => (method === "notifications/initialized" ? silence : undefined), 2000);
  await expect(connecting).rejects.toThrow(late);
});

it("connecting to a server that lists tools one by one without end times out", async () => {
  let page = 0;
  const connecting = description((method, response) => {
    if (method !== "tools/list") return undefined;
    page += 1;
    const result = { tools: [{ name: `t${page}`, inputSchema: plain }], nextCursor: String(page) };
    setTimeout(() => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", id: page, result }));
    }, 100);
    return silence;
  }, 2000);
  await expect(connecting).rejects.toThrow(late);
});

/** Sends lines until nobody reads them any more, or 12 MiB have been sent. */
const flood = (response: ServerResponse, line: string): void => {
  let left = 12_582_912;
  const more = (): void => {
    while (!response.destroyed && left > 0) {
      left -= line.length;
      if (!response.write(line)) return void response.once("drain", more);
    }
    response.end();
  };
  more();
};

const tooLong = "RangeError: a message has more than 10485760 bytes";

it.each([
  ["an answer", "application/json", "\n", tooLong],
  ["an event", "text/event-stream", "\r\n", tooLong],
  ["a stream of events", "text/event-stream", "\r\n\r\n", "read"],
])("%s of more than 10 MiB, as %s with line ends %j, results in: %s", async (_, type, end, expected) => {
  const url = await hostileServer((_method, response) => {
    response.writeHead(200, { "content-type": type });
    flood(response, `data: ${"x".repeat(65_536)}${end}`);
    return silence;
  });
  const response = await boundedFetch(url, { method: "POST", body: JSON.stringify({ id: 1, method: "initialize" }) });
  const outcome = response.text().then(
    () => "read",
    (error: unknown) => String(error),
  );
  expect(await outcome).toBe(expected);
});

/** An answer of 600,000 values in less than 2 MiB. */
const many = `{"jsonrpc":"2.0","id":1,"result":{"content":[${"{},".repeat(600_000)}{}]}}`;

it.each([
  ["an answer", "application/json", ""],
  ["an event", "text/event-stream", "data: "],
  ["an event after a quote in a comment", "text/event-stream", ':"\ndata: '],
  ["an event after a quote in its name", "text/event-stream", 'event: "\r\ndata: '],
  ["an event after a quote in a line that ends with a carriage return", "text/event-stream", ':"\rdata: '],
  ["an event after a backslash at the end of another one", "text/event-stream", 'data: "\\\n\ndata: '],
])("%s of too many values is not read", async (_, type, before) => {
  const url = await hostileServer((_method, response) => {
    response.writeHead(200, { "content-type": type });
    response.end(`${before}${many}\n\n`);
    return silence;
  });
  const response = await boundedFetch(url, { method: "POST", body: JSON.stringify({ id: 1, method: "initialize" }) });
  await expect(response.text()).rejects.toThrow("a message has more than 200000 values");
});

it("a started server's message of too many values is not read", async () => {
  const answer = `process.stdout.write('{"jsonrpc":"2.0","id":0,"result":{"a":[' + "{},".repeat(600_000) + "{}]}}\\n")`;
  const target = { command: process.execPath, args: ["-e", `process.stdin.once("data", () => ${answer})`] };
  await expect(descriptionOf(target)).rejects.toThrow("was ended: a message has more than 200000 values");
});

it("a server that answers without end cannot be connected to", async () => {
  const connecting = description((_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    flood(response, "x".repeat(65_536));
    return silence;
  });
  await expect(connecting).rejects.toThrow(/could not be reached: a message has more than/);
});

it("tools with a deep schema or odd names do not hide other tools", async () => {
  let schema: object = plain;
  for (let depth = 0; depth < 600; depth += 1) schema = { type: "array", items: schema };
  const deep = { type: "object", properties: { a: schema } };
  const names = ["callHost", "_host_function", "TypedDict", "then", "ﬁnd", "find"];
  const tools = [{ name: "deep", inputSchema: deep }, ...names.map((name) => ({ name, inputSchema: plain }))];
  const told = await description((method) => (method === "tools/list" ? { tools } : undefined));
  const functions = [...told.matchAll(/def (\w+)\(/g)].map(([, name]) => name);
  expect(functions).toEqual(["deep", "callHost_", "_host_function_", "TypedDict_", "then_", "find", "find_2"]);
});
