import { type CodeExecutor, FunctionWithRequirements, InvalidInputError } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { ExecutorSessions } from "@fenced/pool";
import { needs } from "@fenced/test-support";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it, onTestFinished } from "vitest";
import { PictureExecutor, pixel } from "../../ai-sdk/test/support/picture-executor.ts";
import { createMcpServer, type McpServerOptions } from "../src/index.ts";
import { call, python, textOf } from "./support/call.ts";

async function connect(executor: CodeExecutor, options: McpServerOptions = {}) {
  onTestFinished(() => executor.stop());
  const [clientSide, serverSide] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "test", version: "1" });
  await createMcpServer(executor, options).connect(serverSide);
  await client.connect(clientSide);
  onTestFinished(() => client.close());
  return client;
}

describe("createMcpServer", () => {
  it("returns images as images, and says how many it left out", async () => {
    const client = await connect(new PictureExecutor({}), { maxImages: 1 });
    const result = await call(client, "run_code", { language: "draw", code: "one\ntwo" });
    expect(result.content).toEqual([
      { type: "text", text: "one\ntwo\n\n1 image was created that is not shown here." },
      { type: "image", mimeType: "image/png", data: pixel.toString("base64") },
    ]);
    // Hosts that find structured content give the model nothing else.
    expect(result.structuredContent).toBeUndefined();
  });

  it("limits output, files and lists", needs("python3"), async () => {
    const limits = { maxOutputCharacters: 10, maxFileBytes: 40, maxFiles: 1 };
    const client = await connect(new LocalCommandLineCodeExecutor(), limits);
    const result = await call(client, "run_code", { language: "python", code: "print('x' * 99)" });
    expect(result.structuredContent).toMatchObject({
      truncated: true,
      output: "xxxxx\n[... 90 characters left out ...]\nxxxx\n",
    });
    await call(client, "write_file", { path: "a", content: "0123456789abcdefghijk" });
    await call(client, "write_file", { path: "b", content: "x".repeat(41) });
    expect(textOf(await call(client, "list_files"))).toBe("a (21 bytes)\n... and 1 more");
    expect(textOf(await call(client, "read_file", { path: "a", offset: 10 }))).toBe(
      "abcdefghij\n[Characters 10 to 20 of 21. Call again with offset 20 for more.]",
    );
    expect(textOf(await call(client, "read_file", { path: "a", offset: 20 }))).toBe("k\n[Characters 20 to 21 of 21.]");
    const tooLarge = await call(client, "read_file", { path: "b" });
    expect(tooLarge.isError).toBe(true);
    expect(textOf(tooLarge)).toBe(
      "b has 41 bytes; read_file reads at most 40. Run code that prints the part you need, or writes it to a smaller file.",
    );
  });

  it("starts an executor on connecting if its languages are not known before", needs("bash"), async () => {
    await using sessions = new ExecutorSessions({ create: () => new LocalCommandLineCodeExecutor() });
    const client = await connect(sessions.executor("ann"));
    expect(sessions.counts.open).toBe(1);
    const { tools } = await client.listTools();
    expect(tools.find(({ name }) => name === "run_code")?.description).toContain("sh");
    expect(await call(client, "run_code", { language: "sh", code: "echo hers" })).toMatchObject({
      structuredContent: { output: "hers\n" },
    });
  });

  it("rejects an executor without languages on connecting", async () => {
    const executor = new LocalCommandLineCodeExecutor();
    onTestFinished(() => executor.stop());
    Object.defineProperty(executor, "capabilities", { value: { ...executor.capabilities, languages: [] } });
    const [, serverSide] = InMemoryTransport.createLinkedPair();
    await expect(createMcpServer(executor).connect(serverSide)).rejects.toThrow(InvalidInputError);
  });

  it("notifies the client when the list of languages changes", needs("python3"), async () => {
    const languages = { klingon: { extension: "kl", command: ["no-such-program"] } };
    const client = await connect(new LocalCommandLineCodeExecutor({ languages }));
    const changed = new Promise<void>((resolve) => {
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve());
    });
    const offered = async () => JSON.stringify((await client.listTools()).tools[0]?.inputSchema);
    expect(await offered()).toContain("klingon");
    expect(await python(client, "print(1)")).toBe("1\n");
    await changed;
    expect(await offered()).not.toContain("klingon");
  });

  it("reports a broken session as an error of the tool", needs("python3"), async () => {
    const broken = FunctionWithRequirements.fromString("def broken():\n    pass\n", {
      globalImports: ["no_such_module_anywhere"],
    });
    const client = await connect(new LocalCommandLineCodeExecutor({ functions: [broken] }));
    const result = await call(client, "run_code", { language: "python", code: "print(1)" });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain("no_such_module_anywhere");
  });

  it("rejects invalid options", () => {
    const executor = new LocalCommandLineCodeExecutor();
    expect(() => createMcpServer(executor, { maxFiles: -1 })).toThrow(InvalidInputError);
  });
});
