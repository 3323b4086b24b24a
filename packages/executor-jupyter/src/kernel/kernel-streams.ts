import { randomUUID } from "node:crypto";
import { Readable, Writable } from "node:stream";
import { untilAborted } from "@fenced/core/abort";
import { PlaceGone } from "@fenced/executor-kit";
import type { SupervisorStreams } from "@fenced/executor-kit/supervisor";
import type { IMessage } from "@jupyterlab/services/lib/kernel/messages.js";
import { field, textField, texts } from "../fields.ts";
import type { ServerClient } from "../servers/server-client.ts";
import { KernelSocket } from "./kernel-socket.ts";
import { channelsPath, findKernel } from "./kernels.ts";
import { createRequest } from "./wire-message.ts";

/** Milliseconds for a WebSocket's handshake; the server first asks a kernel that is idle whether it answers. */
const handshakeMs = 20_000;
/** Milliseconds for the server to say whether it has the kernel. */
const lookMs = 5000;
/** Bytes of one message; servers refuse messages of 10 MB. */
const pieceBytes = 1_048_576;

/**
 * Opens a connection to the keeper of a kernel: bytes that travel in messages of the kernel's control channel, which is answered
 * while a cell runs. Each has a WebSocket of its own, under an id that the server has never seen, so it replays nothing.
 *
 * @param link - identifies the connection to the helper. Default: a new one.
 * @throws PlaceGone if the kernel is gone, or is not the one that has the helper.
 */
export async function openKernelStreams(
  client: ServerClient,
  kernelId: string,
  signal: AbortSignal,
  link: string = randomUUID(),
): Promise<SupervisorStreams> {
  const found = await findKernel(client, kernelId, lookMs);
  if (!found || found.executionState === "dead") throw new PlaceGone("the server no longer has its kernel");
  signal.throwIfAborted();
  const session = randomUUID();
  const streams = new KernelStreams(link, session);
  const path = channelsPath(kernelId, session);
  const socket = await KernelSocket.open({ address: client.address, path, timeoutMs: handshakeMs, signal }, streams);
  try {
    const others = await untilAborted(streams.begin(socket), signal);
    // The helper does not see when a WebSocket breaks, but the server does.
    const isAlone = others.length > 0 && (await findKernel(client, kernelId, lookMs))?.connections === 1;
    if (isAlone) streams.drop(others);
    signal.throwIfAborted();
    return streams;
  } catch (error) {
    socket.close();
    throw error;
  }
}

class KernelStreams implements SupervisorStreams {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly #link: string;
  readonly #session: string;
  #socket: KernelSocket | undefined;
  #opened: (others: readonly string[]) => void = () => {};
  #refused: (error: Error) => void = () => {};

  constructor(link: string, session: string) {
    this.#link = link;
    this.#session = session;
    this.stdout = new Readable({ read: () => {}, destroy: (error, done) => this.#close(error, done) });
    this.stdin = new Writable({
      write: (chunk: Buffer, _, done) => {
        for (let at = 0; at < chunk.length; at += pieceBytes) this.#send({}, [chunk.subarray(at, at + pieceBytes)]);
        done();
      },
      destroy: (error, done) => this.#close(error, done),
    });
    for (const stream of [this.stdin, this.stdout]) stream.on("error", () => {});
  }

  /**
   * Resolves when the helper has answered: with the other connections to the keeper that it knows.
   *
   * @throws PlaceGone if there is none.
   */
  begin(socket: KernelSocket): Promise<readonly string[]> {
    this.#socket = socket;
    return new Promise((resolve, reject) => {
      this.#opened = resolve;
      this.#refused = reject;
      this.#send({ first: true });
      // A kernel answers in order, so this comes first if the kernel was started again.
      socket.send(createRequest("kernel_info_request", "control", this.#session, {}));
    });
  }

  /** Ends other connections. */
  drop(links: readonly string[]): void {
    this.#send({ drop: links });
  }

  onMessage({ channel, header, content, buffers = [] }: IMessage): void {
    const type = textField(header, "msg_type");
    if (channel === "iopub" && type === "status") {
      const state = textField(content, "execution_state");
      if (state === "restarting" || state === "dead") this.#break(new PlaceGone("the kernel has ended"));
    }
    if (channel !== "control") return;
    // Once the helper has answered, nothing is refused any more.
    if (type === "kernel_info_reply") this.#refused(new PlaceGone("the kernel was started again"));
    if (type !== "fenced_link" || textField(content, "link") !== this.#link) return;
    if (field(content, "ended") === true) {
      this.#refused(new PlaceGone("the session is over"));
      this.stdout.push(null);
      return;
    }
    this.#opened(texts(field(content, "others")));
    for (const piece of buffers) this.stdout.push(bytesOf(piece));
  }

  onTooLong(): void {
    this.#break(new Error("the kernel sent a message that is too long"));
  }

  onBroken(error: Error): void {
    this.#break(error);
  }

  #break(error: Error): void {
    this.#refused(error);
    this.stdout.destroy(error);
  }

  #send(content: Readonly<Record<string, unknown>>, buffers: readonly Uint8Array[] = []): void {
    this.#socket?.send(
      createRequest("fenced_link", "control", this.#session, { link: this.#link, ...content }, buffers),
    );
  }

  #close(error: Error | null, done: (error: Error | null) => void): void {
    this.#send({ ended: true });
    this.#socket?.close();
    this.#socket = undefined;
    done(error);
    this.stdin.destroy();
    this.stdout.destroy();
  }
}

/** A copy: the message's other parts share its memory. */
function bytesOf(piece: ArrayBuffer | ArrayBufferView): Buffer {
  const view = ArrayBuffer.isView(piece)
    ? new Uint8Array(piece.buffer, piece.byteOffset, piece.byteLength)
    : new Uint8Array(piece);
  return Buffer.from(view);
}
