import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { ServiceFailure } from "../service-failure.ts";
import type { Answer } from "./api-request.ts";

/** Sends an answer, and waits until it is sent or the client is gone. */
export async function sendAnswer(response: ServerResponse, answer: Answer): Promise<void> {
  if (answer.file) {
    await sendFile(response, answer);
    return;
  }
  const body = answer.body === undefined ? "" : JSON.stringify(answer.body);
  response.writeHead(answer.status, {
    ...answer.headers,
    ...(body === "" ? {} : { "content-type": "application/json; charset=utf-8" }),
    "content-length": String(Buffer.byteLength(body)),
  });
  response.end(body);
}

/** Gives up an answer that is not to be sent. */
export async function discardAnswer({ file }: Answer): Promise<void> {
  await file?.close();
}

/** The answer that a failure is. */
export function failureAnswer(error: unknown): Answer {
  const failure =
    error instanceof ServiceFailure
      ? error
      : new ServiceFailure(500, "InternalServerError", error instanceof Error ? error.message : String(error));
  const { status, headers, code, message } = failure;
  if (code === undefined) return { status, headers };
  return { status, headers: { ...headers, "x-ms-error-code": code }, body: { error: { code, message } } };
}

async function sendFile(response: ServerResponse, { status, headers, file }: Answer): Promise<void> {
  if (!file) return;
  try {
    const { size } = await file.stat();
    response.writeHead(status, {
      ...headers,
      "content-type": "application/octet-stream",
      "content-length": String(size),
    });
    // What the code adds to the file meanwhile would not fit the length.
    if (size > 0) await pipeline(file.createReadStream({ start: 0, end: size - 1 }), response);
    else response.end();
  } catch {
    // The client is gone, or the file became shorter: the connection ends, which is all there is to say.
    response.destroy();
  } finally {
    await file.close().catch(() => {});
  }
}
