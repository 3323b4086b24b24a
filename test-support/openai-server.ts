/**
 * A small server for the OpenAI chat completions protocol, streamed (server-sent events) and not, that answers from a
 * script. Requests beyond the script get a 500, so that they are noticed.
 *
 *     await using server = await startOpenAIServer([{ text: ["Hel", "lo"] }, { status: 429 }]);
 *     createOpenAICompatible({ name: "test", baseURL: server.baseURL });
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";

/** The server's answer to one request. */
export interface ScriptedAnswer {
  /** The text, or the chunks in which it is streamed. */
  readonly text?: string | readonly string[];
  readonly reasoning?: string | readonly string[];
  readonly toolCalls?: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  /** `null`: the server does not report it. Default: 10 and 5. */
  readonly usage?: { readonly prompt_tokens: number; readonly completion_tokens: number } | null;
  /** Default: `tool_calls` if there are any, else `stop`. `null`: the stream ends without one. */
  readonly finishReason?: string | null;
  /** An HTTP status other than 200: an error answer. */
  readonly status?: number;
  /** The text of an error answer. */
  readonly error?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Replaces the whole body. */
  readonly body?: string;
  /** Milliseconds before the first byte. `Infinity`: it never answers. */
  readonly delayMs?: number;
  /** Milliseconds before each chunk. */
  readonly chunkDelayMs?: number;
  /** The stream is written in pieces of this many bytes, regardless of boundaries. */
  readonly pieceBytes?: number;
  /** The connection is cut after this many chunks, or in the middle of a whole answer. */
  readonly dropAfterChunks?: number;
  /** After this many chunks an error event is sent instead of the next one. */
  readonly errorAfterChunks?: number;
}

/** The fields of a request's body that tests check. */
export interface ChatRequest {
  readonly model: string;
  readonly stream?: boolean;
  readonly messages: readonly {
    readonly role: string;
    readonly content: unknown;
    readonly tool_call_id?: string;
    readonly tool_calls?: readonly {
      readonly id: string;
      readonly function: { readonly name: string; readonly arguments: string };
    }[];
    readonly reasoning_content?: string;
  }[];
  readonly tools?: readonly { readonly function: Readonly<Record<string, unknown>> }[];
  readonly response_format?: unknown;
  readonly temperature?: number;
  readonly max_tokens?: number;
  readonly seed?: number;
}

/** One request as received. */
export interface RecordedRequest {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: ChatRequest;
  /** Settles when the connection is done: true if the client left before the answer was complete. */
  readonly aborted: Promise<boolean>;
}

export interface OpenAIServer extends AsyncDisposable {
  /** The base URL for clients, including `/v1`. */
  readonly baseURL: string;
  readonly requests: readonly RecordedRequest[];
}

export async function startOpenAIServer(
  answers: readonly ScriptedAnswer[] | ((request: RecordedRequest, index: number) => ScriptedAnswer),
): Promise<OpenAIServer> {
  const requests: RecordedRequest[] = [];
  const stopping = new AbortController();
  const server = createServer((request, response) => {
    void readBody(request).then((body) => {
      const aborted = new Promise<boolean>((resolve) => {
        response.once("close", () => resolve(!response.writableFinished));
      });
      const recorded = { path: request.url ?? "", headers: request.headers, body, aborted };
      const index = requests.push(recorded) - 1;
      const answer = typeof answers === "function" ? answers(recorded, index) : answers[index];
      const scripted = answer ?? { status: 500, error: `request ${index + 1} is not in the script` };
      return send(response, scripted, body.stream === true, stopping.signal).catch(() => response.destroy());
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    baseURL: `http://127.0.0.1:${address.port}/v1`,
    requests,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        stopping.abort();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function readBody(request: IncomingMessage): Promise<ChatRequest> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return JSON.parse(Buffer.concat(parts).toString()) as ChatRequest;
}

async function send(
  response: ServerResponse,
  answer: ScriptedAnswer,
  stream: boolean,
  signal: AbortSignal,
): Promise<void> {
  await pause(answer.delayMs ?? 0, signal);
  if (answer.status !== undefined && answer.status !== 200) {
    response.writeHead(answer.status, { "content-type": "application/json", ...answer.headers });
    response.end(answer.body ?? JSON.stringify({ error: { message: answer.error ?? "scripted error" } }));
  } else if (stream) {
    response.writeHead(200, { "content-type": "text/event-stream", ...answer.headers });
    await sendEvents(response, answer, signal);
  } else {
    const body = answer.body ?? JSON.stringify(wholeAnswer(answer));
    const isCut = answer.dropAfterChunks !== undefined;
    const length = isCut ? { "content-length": String(body.length + 1) } : {};
    response.writeHead(200, { "content-type": "application/json", ...length, ...answer.headers });
    if (isCut) response.write(body, () => response.destroy());
    else response.end(body);
  }
}

async function sendEvents(response: ServerResponse, answer: ScriptedAnswer, signal: AbortSignal): Promise<void> {
  if (answer.body !== undefined) return void response.end(answer.body);
  for (const [index, chunk] of chunksOf(answer).entries()) {
    await pause(answer.chunkDelayMs ?? 0, signal);
    if (index === answer.dropAfterChunks) return void response.destroy();
    const failed = index === answer.errorAfterChunks;
    const payload = failed ? { error: { message: answer.error ?? "scripted error" } } : chunk;
    await write(response, `data: ${JSON.stringify(payload)}\n\n`, answer.pieceBytes);
    if (failed) break;
  }
  await write(response, "data: [DONE]\n\n", answer.pieceBytes);
  response.end();
}

async function write(response: ServerResponse, text: string, pieceBytes = Infinity): Promise<void> {
  const bytes = Buffer.from(text);
  for (let start = 0; start < bytes.length; start += pieceBytes) {
    const piece = bytes.subarray(start, start + pieceBytes);
    await new Promise<void>((resolve) => {
      response.write(piece, () => resolve());
    });
    if (pieceBytes !== Infinity) await setImmediate();
  }
}

function chunksOf(answer: ScriptedAnswer): object[] {
  const deltas: object[] = [{ role: "assistant", content: "" }];
  for (const piece of pieces(answer.reasoning)) deltas.push({ reasoning_content: piece });
  for (const piece of pieces(answer.text)) deltas.push({ content: piece });
  for (const [index, call] of (answer.toolCalls ?? []).entries()) {
    const middle = Math.ceil(call.arguments.length / 2);
    const [head, tail] = [call.arguments.slice(0, middle), call.arguments.slice(middle)];
    deltas.push({
      tool_calls: [{ index, id: call.id, type: "function", function: { name: call.name, arguments: head } }],
    });
    deltas.push({ tool_calls: [{ index, function: { arguments: tail } }] });
  }
  const base = { id: "chat-1", object: "chat.completion.chunk", created: 1, model: "test-model" };
  const chunks: object[] = deltas.map((delta) => ({
    ...base,
    choices: [{ index: 0, delta, finish_reason: null }],
  }));
  const reason = finishReasonOf(answer);
  if (reason !== null) chunks.push({ ...base, choices: [{ index: 0, delta: {}, finish_reason: reason }] });
  if (answer.usage !== null) chunks.push({ ...base, choices: [], usage: usageOf(answer) });
  return chunks;
}

function wholeAnswer(answer: ScriptedAnswer): object {
  const message = {
    role: "assistant",
    content: answer.text === undefined ? null : pieces(answer.text).join(""),
    ...(answer.reasoning !== undefined && { reasoning_content: pieces(answer.reasoning).join("") }),
    ...(answer.toolCalls && {
      tool_calls: answer.toolCalls.map(({ id, name, arguments: text }) => ({
        id,
        type: "function",
        function: { name, arguments: text },
      })),
    }),
  };
  return {
    id: "chat-1",
    object: "chat.completion",
    created: 1,
    model: "test-model",
    choices: [{ index: 0, message, finish_reason: finishReasonOf(answer) }],
    ...(answer.usage !== null && { usage: usageOf(answer) }),
  };
}

function finishReasonOf(answer: ScriptedAnswer): string | null {
  if (answer.finishReason !== undefined) return answer.finishReason;
  return answer.toolCalls === undefined ? "stop" : "tool_calls";
}

function usageOf(answer: ScriptedAnswer): object {
  const usage = answer.usage ?? { prompt_tokens: 10, completion_tokens: 5 };
  return { ...usage, total_tokens: usage.prompt_tokens + usage.completion_tokens };
}

function pieces(text: string | readonly string[] | undefined): readonly string[] {
  if (text === undefined) return [];
  return typeof text === "string" ? [text] : text;
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (milliseconds === 0) return;
  // A timer cannot wait forever; a day is more than any test.
  await sleep(Math.min(milliseconds, 86_400_000), undefined, { signal });
}
