import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { ContentsFiles } from "../../src/files/contents-files.ts";
import { ServerClient } from "../../src/servers/server-client.ts";

/** A contents API, with files in memory; `refuses` decides which renames fail. */
async function opened(refuses: (from: string, to: string) => boolean = () => false) {
  const files = new Map<string, string>();
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? "", "http://server");
    const path = decodeURIComponent(url.pathname.replace(/^\/api\/contents\/?/, ""));
    const body: { path?: string; content?: string } = JSON.parse((await text(request)) || "{}");
    const answer = (status: number, json?: unknown): void => {
      response.writeHead(status, { "Content-Type": "application/json" });
      response.end(json === undefined ? undefined : JSON.stringify(json));
    };
    const content = files.get(path);
    if (request.method === "PUT") {
      files.set(path, Buffer.from(body.content ?? "", "base64").toString());
      answer(201, {});
    } else if (path === "") {
      const children = [...files].map(([name, { length }]) => ({ name, type: "file", size: length }));
      answer(200, { name: "", type: "directory", content: children });
    } else if (content === undefined) answer(404, { message: "No such file" });
    else if (request.method === "PATCH") {
      const { path: to = "" } = body;
      if (files.has(to)) answer(409, { message: "File already exists" });
      else if (refuses(path, to)) answer(500, { message: "The disk is broken" });
      else {
        files.delete(path);
        files.set(to, content);
        answer(200, {});
      }
    } else if (request.method === "DELETE") {
      files.delete(path);
      answer(204);
    } else answer(200, { name: path, type: "file", size: content.length });
  };
  const server = createServer((request, response) => void respond(request, response));
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  const client = new ServerClient({ baseUrl: `http://127.0.0.1:${port}/`, headers: {}, legacyWebSocket: false });
  onTestFinished(async () => {
    await client[Symbol.asyncDispose]();
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  });
  return { files, contents: ContentsFiles.in(() => client, "") };
}

describe("a file that is replaced through the contents API", () => {
  it("has the new content, and nothing of the old one is left", async () => {
    const { files, contents } = await opened();
    await contents.write("a", "new");
    await contents.write("b", "old");
    await contents.move("a", "b");
    expect(Object.fromEntries(files)).toEqual({ b: "new" });
  });

  it("keeps the old one if the server does not give the new one its name", async () => {
    const { files, contents } = await opened((from, to) => from === "a" && to === "b");
    await contents.write("a", "new");
    await contents.write("b", "old");
    await expect(contents.move("a", "b")).rejects.toThrow(/The disk is broken/);
    expect(Object.fromEntries(files)).toEqual({ a: "new", b: "old" });
  });
});
