import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { FencedError, type WorkspaceFiles } from "@fenced/core";
import { fileResponse, httpStatus } from "@fenced/core/web";
import { PageGuard } from "./page-guard.ts";
import type { WebChat } from "./web-chat.ts";

/** A running server. */
export interface WebServer extends AsyncDisposable {
  /** The page's address, with the token. */
  readonly url: string;
}

interface Site {
  readonly chat: WebChat;
  readonly files: WorkspaceFiles;
  readonly guard: PageGuard;
}

const page: Readonly<Record<string, readonly [string, string]>> = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/page.js": ["page.js", "text/javascript; charset=utf-8"],
  "/parts.js": ["parts.js", "text/javascript; charset=utf-8"],
  "/markdown.js": ["markdown.js", "text/javascript; charset=utf-8"],
  "/page.css": ["page.css", "text/css; charset=utf-8"],
};
const maxBodyBytes = 100_000;

/** Serves the page and its chat to this computer only. */
export async function startWebServer(chat: WebChat, files: WorkspaceFiles, port: number): Promise<WebServer> {
  const site: Site = { chat, files, guard: new PageGuard() };
  const server = createServer((request, response) => void answer(site, request, response));
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${portOf(server)}/#${site.guard.token}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function answer(site: Site, request: IncomingMessage, response: ServerResponse): Promise<void> {
  // The page also shows what programs created: only its own script may run, and nothing is loaded from elsewhere.
  response.setHeader(
    "content-security-policy",
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  );
  response.setHeader("x-content-type-options", "nosniff");
  response.setHeader("referrer-policy", "no-referrer");
  response.setHeader("cache-control", "no-store");
  try {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
    const asset = request.method === "GET" ? page[pathname] : undefined;
    const refusal = asset === undefined ? site.guard.check(request) : site.guard.checkOrigin(request);
    if (refusal !== undefined) {
      end(response, refusal);
    } else if (asset === undefined) {
      const reply = await route(site, { method: request.method ?? "", pathname, searchParams, request, response });
      if (reply !== undefined) end(response, reply);
    } else {
      await sendPage(response, asset);
    }
  } catch (error) {
    const message = FencedError.isInstance(error) ? error.message : "The server could not answer.";
    end(response, { status: httpStatus(error), message });
  }
}

interface Reply {
  readonly status: number;
  readonly message?: string;
}

const done: Reply = { status: 204 };

interface Call {
  readonly method: string;
  readonly pathname: string;
  readonly searchParams: URLSearchParams;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** Handles a call: sends streams itself, and returns any other reply. */
async function route({ chat, files }: Site, call: Call): Promise<Reply | undefined> {
  const { method, pathname, searchParams, request, response } = call;
  switch (`${method} ${pathname}`) {
    case "GET /events":
      await sendEvents(chat, Number(searchParams.get("from") ?? 0), response);
      return undefined;
    case "GET /file":
      return sendFile(files, searchParams.get("path") ?? "", response);
    case "POST /task": {
      const { task } = await bodyOf(request);
      if (typeof task !== "string" || task.trim() === "") return { status: 400, message: "The task is empty." };
      return chat.start(task) ? done : { status: 409, message: "A chat is already running." };
    }
    case "POST /answer": {
      const { id, approved } = await bodyOf(request);
      const known = typeof id === "string" && typeof approved === "boolean" && chat.answer(id, approved);
      return known ? done : { status: 409, message: "This question is no longer open." };
    }
    case "POST /stop":
      await chat.stop();
      return done;
    default:
      return { status: 404, message: "There is no such page." };
  }
}

/** Sends one item per line, live. A slow page holds up no other: each has its own position in the log. */
async function sendEvents(chat: WebChat, from: number, response: ServerResponse): Promise<void> {
  const left = new AbortController();
  response.once("close", () => left.abort());
  response.writeHead(200, { "content-type": "application/x-ndjson; charset=utf-8" });
  response.flushHeaders();
  for await (const item of chat.log.from(Number.isSafeInteger(from) && from > 0 ? from : 0, left.signal)) {
    const isFull = !response.write(`${JSON.stringify(item)}\n`);
    if (isFull) await Promise.race([once(response, "drain"), once(response, "close")]);
  }
  response.end();
}

async function sendFile(files: WorkspaceFiles, path: string, response: ServerResponse): Promise<undefined> {
  const { headers, body } = await fileResponse(files, path);
  response.writeHead(200, Object.fromEntries(headers));
  // A file that becomes shorter meanwhile ends the connection.
  await pipeline(body === null ? [] : Readable.fromWeb(body), response).catch(() => {});
}

async function sendPage(response: ServerResponse, [file, type]: readonly [string, string]): Promise<void> {
  const content = await readFile(new URL(`../../page/${file}`, import.meta.url));
  response.writeHead(200, { "content-type": type });
  response.end(content);
}

async function bodyOf(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += String(chunk);
    if (text.length > maxBodyBytes) return {};
  }
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null ? { ...body } : {};
  } catch {
    return {};
  }
}

function end(response: ServerResponse, { status, message = "" }: Reply): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.writeHead(status, message === "" ? {} : { "content-type": "text/plain; charset=utf-8" });
  response.end(message);
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
