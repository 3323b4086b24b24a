import { once } from "node:events";
import { appendFile, rename, truncate, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fileResponse } from "@fenced/core/web";
import { describe, expect, it, onTestFinished } from "vitest";
import { executorWith } from "./support/local-executor.ts";
import { temporaryDirectory } from "./support/temporary-directory.ts";

const forged = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged";

/**
 * Serves the file `a`, which `change` changes between the look at its size and the first read, and the file `b`.
 *
 * @returns all bytes of one connection that asks for `a`, then for `b`.
 */
async function askForBoth(content: string, change: (path: string) => Promise<void>): Promise<string> {
  const workDir = await temporaryDirectory();
  const { files } = executorWith({ workDir });
  await files.write("a", content);
  await files.write("b", "of the next request");
  const changing = {
    stat: async (path: string) => {
      const found = await files.stat(path);
      if (path === "a") await change(join(workDir, path));
      return found;
    },
    readStream: files.readStream.bind(files),
  };
  const answer = async ({ url = "" }: IncomingMessage, reply: ServerResponse): Promise<void> => {
    const { status, headers, body } = await fileResponse(changing, url.slice(1));
    reply.writeHead(status, Object.fromEntries(headers));
    await pipeline(body === null ? [] : Readable.fromWeb(body), reply).catch(() => {});
  };
  const server = createServer((request, reply) => void answer(request, reply)).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const client = connect(typeof address === "object" && address !== null ? address.port : 0, "127.0.0.1");
  client.write("GET /a HTTP/1.1\r\nhost: x\r\n\r\nGET /b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  let received = "";
  for await (const chunk of client.setEncoding("latin1")) received += String(chunk);
  return received;
}

/** The bodies on a connection, as a client that trusts `content-length` reads them. */
function bodiesOf(received: string): string[] {
  const head = /^HTTP\/1\.1 200 OK\r\n(?:[^\r]+\r\n)*?content-length: (\d+)\r\n(?:[^\r]+\r\n)*\r\n/i.exec(received);
  if (head === null) return received === "" ? [] : [`not a response: ${received.slice(0, 40)}`];
  const end = head[0].length + Number(head[1]);
  return [received.slice(head[0].length, end), ...bodiesOf(received.slice(end))];
}

describe("a file that code changes while it is sent", () => {
  it("arrives as it was if it grows", async () => {
    const received = await askForBoth("a page", (path) => appendFile(path, forged));
    expect(bodiesOf(received)).toEqual(["a page", "of the next request"]);
  });

  it("arrives as it was if it grows from nothing", async () => {
    const received = await askForBoth("", (path) => appendFile(path, forged));
    expect(bodiesOf(received)).toEqual(["", "of the next request"]);
  });

  it("ends the connection if it shrinks, so that the next response is not taken for its rest", async () => {
    expect(bodiesOf(await askForBoth("a page", (path) => truncate(path, 3)))).toEqual(["a p"]);
  });

  it("never reaches into the next response if another file takes its place", async () => {
    const replace = async (path: string, content: string): Promise<void> => {
      await writeFile(`${path}.new`, content);
      await rename(`${path}.new`, path);
    };
    const longer = await askForBoth("a page", (path) => replace(path, `longer${forged}`));
    expect(bodiesOf(longer)).toEqual(["longer", "of the next request"]);
    expect(bodiesOf(await askForBoth("a page", (path) => replace(path, "new")))).toEqual(["new"]);
  });
});
