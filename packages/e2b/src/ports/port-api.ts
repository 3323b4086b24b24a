import { once } from "node:events";
import { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { joinSignals } from "@fenced/core/abort";
import * as z from "zod";
import type { Sandbox } from "../control/sandbox.ts";
import { askProgram } from "./ask-program.ts";
import { headersForClient, headersForProgram } from "./port-headers.ts";
import { connectionRefusal } from "./port-refusal.ts";

/** Statuses of answers that never have a body. */
const withoutBody: ReadonlySet<number> = new Set([204, 205, 304]);

/** Asks a program that listens on a port of a sandbox, and passes its answer on, as it comes. */
export async function portApi(request: Request, sandbox: Sandbox, port: number): Promise<Response> {
  try {
    return answerOf(await ask(request, sandbox, port), request.method);
  } catch (error) {
    const refusal = connectionRefusal(sandbox.settings.id, port, error);
    return Response.json(refusal, { status: refusal.code });
  }
}

/** @throws FencedError if the sandbox cannot be reached; the system's error if the program does not answer. */
async function ask(request: Request, sandbox: Sandbox, port: number): Promise<IncomingMessage> {
  const { method, body, headers } = request;
  const { pathname, search } = new URL(request.url);
  const signal = joinSignals(request.signal, sandbox.signal);
  const forProgram = headersForProgram(
    Object.fromEntries([...headers].map(([name, value]) => [name, [value]])),
    sandbox,
    port,
  );
  // Also for methods that seldom have a body, whose length is not known.
  if (headers.has("transfer-encoding")) forProgram["transfer-encoding"] = ["chunked"];
  const connection = await sandbox.openPort(port);
  const asking = askProgram(connection, { method, path: `${pathname}${search}`, headers: forProgram, signal });
  const answered = once(asking, "response", { signal });
  if (body === null) asking.end();
  // A program may answer before it has read everything; if it does not answer, that says why.
  else pipeline(Readable.fromWeb(body), asking).catch(() => {});
  try {
    const [response] = z.tuple([z.unknown()]).parse(await answered);
    if (response instanceof IncomingMessage) return response;
    throw new Error("there is no answer");
  } catch (error) {
    asking.destroy();
    throw error;
  } finally {
    // It may break later; then its answer does, too.
    asking.on("error", () => {});
  }
}

function answerOf(response: IncomingMessage, method: string): Response {
  const { statusCode: status = 502, statusMessage: statusText = "" } = response;
  try {
    const headers = new Headers();
    for (const [name, values] of Object.entries(headersForClient(response))) {
      for (const value of values) headers.append(name, value);
    }
    const isEmpty = method === "HEAD" || withoutBody.has(status);
    if (isEmpty) response.resume();
    return new Response(isEmpty ? null : ReadableStream.from<Uint8Array>(response), { status, statusText, headers });
  } catch (error) {
    // No program of a web server says that.
    response.destroy();
    throw error;
  }
}
