import type { Agent, IncomingMessage } from "node:http";
import { Duplex, Readable } from "node:stream";
import { WebSocket } from "ws";
import { parseJson, textOf } from "./answer-text.ts";
import { ApiStatusError } from "./api-error.ts";

/** See "PodExecOptions" in https://kubernetes.io/docs/reference/generated/kubernetes-api/; a message begins with its channel. */
const protocols = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
const [stdinChannel, stdoutChannel, stderrChannel, statusChannel] = [0, 1, 2, 3] as const;
/** Maximum bytes of a message to send; servers refuse messages of many megabytes. */
const longestMessage = 131_072;
const handshakeMs = 30_000;
const longestRefusal = 65_536;
/** Milliseconds within which the text of a refusal must arrive. */
const refusalMs = 5000;
/** Maximum bytes of a received message; kubelets send a few tens of thousands. */
const longestArrival = 16_777_216;

/** How a connection is made and secured. */
export interface SecureOptions {
  readonly agent: Agent;
  readonly ca?: Buffer | undefined;
  readonly cert?: Buffer | string | undefined;
  readonly key?: Buffer | string | undefined;
  readonly rejectUnauthorized?: boolean | undefined;
  readonly servername?: string | undefined;
}

/** Options of `openExecSocket`. */
export interface ExecSocketOptions extends SecureOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/**
 * Opens the WebSocket of an exec.
 *
 * @throws ApiStatusError if it is refused; the connection's error; the signal's reason.
 */
export function openExecSocket(url: URL, { headers, signal, ...secured }: ExecSocketOptions): Promise<WebSocket> {
  signal.throwIfAborted();
  const socket = new WebSocket(url, protocols, {
    ...secured,
    headers: { ...headers },
    handshakeTimeout: handshakeMs,
    maxPayload: longestArrival,
    perMessageDeflate: false,
  });
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      socket.terminate();
      reject(signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason)));
    };
    const settle = (action: () => void): void => {
      signal.removeEventListener("abort", abort);
      action();
    };
    signal.addEventListener("abort", abort, { once: true });
    socket.once("open", () => settle(() => resolve(socket)));
    socket.on("error", (error) => settle(() => reject(error)));
    socket.once("unexpected-response", (_, answer: IncomingMessage) => {
      void refusalOf(answer).then((error) => {
        settle(() => reject(error));
        socket.terminate();
      });
    });
  });
}

async function refusalOf(answer: IncomingMessage): Promise<ApiStatusError> {
  const text = await textOf(answer, longestRefusal, refusalMs);
  const body = parseJson(text);
  return new ApiStatusError(answer.statusCode ?? 0, body === undefined ? { message: text } : body);
}

/** The standard streams of a program in a pod. */
export interface ExecStreams {
  /** Destroying it closes the connection. */
  readonly stdin: Duplex;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

/** The streams that travel over the WebSocket of an exec. */
export function streamsOf(socket: WebSocket): ExecStreams {
  const [stdout, stderr] = [new Readable({ read: () => {} }), new Readable({ read: () => {} })];
  const stdin = new Duplex({
    read: () => {},
    write: (chunk: Buffer, _, wrote) => send(socket, chunk, wrote),
    destroy: (error, destroyed) => {
      // The other side may be gone: do not wait for it to close.
      socket.close();
      setTimeout(() => socket.terminate(), 1000).unref();
      destroyed(error);
    },
  });
  socket.on("message", (data) => {
    const bytes = Array.isArray(data) ? Buffer.concat(data) : Buffer.isBuffer(data) ? data : Buffer.from(data);
    const content = bytes.subarray(1);
    if (content.length === 0) return;
    if (bytes[0] === stdoutChannel) stdout.push(content);
    else if (bytes[0] === stderrChannel) stderr.push(content);
    else if (bytes[0] === statusChannel) stderr.push(statusText(content.toString()));
  });
  socket.on("close", () => {
    stdout.push(null);
    stderr.push(null);
    stdin.push(null);
  });
  return { stdin, stdout, stderr };
}

function send(socket: WebSocket, chunk: Buffer, wrote: (error?: Error | null) => void): void {
  if (socket.readyState !== socket.OPEN) {
    wrote(new Error("the connection to the pod has ended"));
    return;
  }
  for (let start = 0; start < chunk.length; start += longestMessage) {
    const piece = chunk.subarray(start, start + longestMessage);
    const message = Buffer.allocUnsafe(piece.length + 1);
    message[0] = stdinChannel;
    message.set(piece, 1);
    const last = start + longestMessage >= chunk.length;
    socket.send(message, { binary: true }, last ? (error) => wrote(error ?? null) : undefined);
  }
}

/** How the program ended, from a `Status` of the API; empty if it succeeded. */
function statusText(text: string): string {
  const status = parseJson(text);
  if (status === undefined) return `\n${text}`;
  const message: unknown = Reflect.get(Object(status), "message");
  return typeof message === "string" ? `\n${message}` : "";
}
