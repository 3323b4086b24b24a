import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ExecutorStoppedError } from "@fenced/core";
import { untilAborted, within } from "@fenced/core/abort";
import { PlaceGone } from "@fenced/executor-kit";
import type { IMessage } from "@jupyterlab/services/lib/kernel/messages.js";
import { textField } from "../fields.ts";
import type { ServerClient } from "../servers/server-client.ts";
import { kernelDied, KernelLostError, KernelRequest, type KernelEnd } from "./kernel-request.ts";
import { KernelSocket, type MessageSocket, type SocketEvents } from "./kernel-socket.ts";
import { KernelWatch } from "./kernel-watch.ts";
import { channelsPath, findKernel } from "./kernels.ts";
import { createRequest, type RequestChannel, type RequestType } from "./wire-message.ts";

/** Bytes of unread output at which the socket is paused, and below which it resumes. */
const [mostWaiting, littleWaiting] = [2_097_152, 524_288];

/** Milliseconds for a WebSocket's handshake. The first may be slow on a server that starts many kernels at once. */
const [firstHandshakeMs, nextHandshakeMs] = [90_000, 5000];

/** Milliseconds within which an idle kernel answers. */
const probeMs = 5000;

/** Options of a `KernelLink`. */
export interface KernelLinkOptions {
  readonly client: ServerClient;
  readonly kernelId: string;
  /** Milliseconds for which the link retries a server that went away. */
  readonly reconnectTimeoutMs: number;
  /** Why the server has ended, as soon as that is known. */
  readonly serverEnded: () => string | undefined;
  /**
   * Opens a connection that comes back by itself, and is lost only with the kernel. Default: a WebSocket, which this link
   * opens again when it breaks.
   */
  readonly openSocket?: (events: SocketEvents) => MessageSocket;
}

/** What the helper in the kernel sends on its own. */
export interface FrameEvents {
  readonly onFrames: (message: IMessage) => void;
  /** The connection broke and is back: data in flight may be lost. */
  readonly onReconnected: () => void;
  /** The kernel is gone, or was released. */
  readonly onLost: () => void;
}

/**
 * The connection to a kernel. Sends requests, delivers their answers, reconnects when the connection breaks, and
 * notices when the kernel is gone. Every request either finishes or rejects with a `KernelLostError`.
 */
export class KernelLink {
  protected readonly options: KernelLinkOptions;
  /** Stays the same after a reconnection, so that the server knows which messages it kept for this link. */
  readonly #session = randomUUID();
  readonly #requests = new Map<string, KernelRequest>();
  /** Requests that only ask whether the kernel answers. */
  readonly #probes = new Set<string>();
  /** Messages created while there was no connection, in order. */
  #unsent: IMessage[] = [];
  readonly #watch: KernelWatch;
  #socket: MessageSocket | undefined;
  #waiting = 0;
  #paused = false;
  #end: KernelEnd | undefined;
  #onEnd: (end: KernelEnd) => void = () => {};
  #frames: FrameEvents | undefined;

  protected constructor(options: KernelLinkOptions) {
    this.options = options;
    this.#watch = new KernelWatch({
      look: () => findKernel(options.client, options.kernelId, 5000),
      isSilent: () => this.#waiting === 0 && this.#socket !== undefined,
      probe: () => this.#findForgotten(),
      onEnd: (end) => this.#lose(end),
    });
  }

  /** @throws Error if the server does not accept the connection. */
  protected async open(signal: AbortSignal): Promise<void> {
    this.#socket = await untilAborted(this.#connect(firstHandshakeMs, signal), signal);
  }

  /** Calls `action` once, as soon as the kernel is gone, unless it was released. */
  whenEnded(action: (end: KernelEnd) => void): void {
    if (this.#end) action(this.#end);
    else this.#onEnd = action;
  }

  /** Why the kernel is gone, once it is. */
  get end(): KernelEnd | undefined {
    return this.#end;
  }

  /** Sends a request. */
  request(
    type: RequestType,
    channel: RequestChannel,
    content: Readonly<Record<string, unknown>>,
    { outputs }: { readonly outputs: boolean },
  ): KernelRequest {
    const message = createRequest(type, channel, this.#session, content);
    const request = new KernelRequest(message.header.msg_id, {
      channel,
      outputs,
      onTaken: (bytes) => this.#release(bytes),
    });
    if (this.#end) request.fail(new KernelLostError(this.#end));
    else this.#follow(request, message);
    return request;
  }

  /** Sends frames to the helper, which does not answer. */
  sendFrames(content: Readonly<Record<string, unknown>>, frames: readonly Uint8Array[]): void {
    this.#send(createRequest("fenced_calls", "control", this.#session, content, frames));
  }

  /** Passes what the helper sends on its own to `events`. */
  takeFrames(events: FrameEvents): void {
    this.#frames = events;
  }

  /** Gives the kernel the line of input that it asked for. */
  reply(value: string): void {
    const content = { status: "ok", value };
    this.#send(createRequest("input_reply", "stdin", this.#session, content));
  }

  /** Releases the kernel, which keeps running; requests in progress reject. */
  disconnect(): void {
    this.#onEnd = () => {};
    this.#lose({ kind: "died", reason: "the connection to the kernel was closed" });
  }

  #follow(request: KernelRequest, message: IMessage): void {
    this.#requests.set(request.id, request);
    if (!this.options.openSocket) this.#watch.start();
    const forget = (): void => {
      this.#requests.delete(request.id);
      this.#probes.delete(request.id);
      if (this.#requests.size === 0) this.#watch.stop();
    };
    request.finished.then(forget, forget);
    this.#send(message);
  }

  #send(message: IMessage): void {
    if (!this.#end && this.#socket?.send(message) !== true) this.#unsent.push(message);
  }

  /** A request is forgotten if it is still open after a later one on its channel was answered. */
  async #findForgotten(): Promise<boolean> {
    return (await this.#hasForgotten("shell")) || (await this.#hasForgotten("control"));
  }

  /** A kernel answers in order on each channel. A stopped kernel does not answer, and is not asked again. */
  async #hasForgotten(channel: RequestChannel): Promise<boolean> {
    const before = [...this.#requests.values()].filter((request) => request.channel === channel);
    if (before.length === 0 || before.some(({ id }) => this.#probes.has(id))) return false;
    const probe = this.request("kernel_info_request", channel, {}, { outputs: false });
    this.#probes.add(probe.id);
    const answered = await within(probeMs, probe.finished);
    if (answered === undefined) return false;
    return before.some(({ id }) => this.#requests.has(id));
  }

  /** A message was too long for this process, and it is unknown which request it belonged to. */
  #loseOutputs(): void {
    for (const request of this.#requests.values()) request.incomplete = true;
  }

  async #connect(timeoutMs: number, signal?: AbortSignal): Promise<MessageSocket> {
    const { client, kernelId, openSocket } = this.options;
    const events = {
      onMessage: (message: IMessage, bytes: number) => this.#receive(message, bytes),
      onTooLong: () => this.#loseOutputs(),
    };
    if (openSocket) return openSocket({ ...events, onBroken: (error) => this.#lose(endOf(error)) });
    return KernelSocket.open(
      {
        address: client.address,
        path: channelsPath(kernelId, this.#session),
        timeoutMs,
        ...(signal ? { signal } : {}),
      },
      { ...events, onBroken: () => void this.#reconnect() },
    );
  }

  #receive(message: IMessage, bytes: number): void {
    this.#watch.heard();
    if (this.#endsKernel(message)) return;
    if (message.channel === "control" && textField(message.header, "msg_type") === "fenced_frames") {
      this.#frames?.onFrames(message);
      return;
    }
    const request = this.#requests.get(textField(message.parent_header, "msg_id"));
    if (!request) {
      this.#socket?.taken(bytes);
      return;
    }
    this.#waiting += bytes;
    if (this.#waiting > mostWaiting && !this.#paused) {
      this.#paused = true;
      this.#socket?.pause();
    }
    request.accept(message, bytes);
  }

  #endsKernel(message: IMessage): boolean {
    if (message.channel !== "iopub") return false;
    const type = textField(message.header, "msg_type");
    const state = type === "status" ? textField(message.content, "execution_state") : "";
    const restarted = type === "shutdown_reply";
    if (state !== "restarting" && state !== "dead" && !restarted) return false;
    this.#lose({ kind: "died", reason: restarted ? "the kernel was shut down or restarted" : kernelDied });
    return true;
  }

  #release(bytes: number): void {
    this.#waiting -= bytes;
    this.#socket?.taken(bytes);
    if (!this.#paused || this.#waiting > littleWaiting) return;
    this.#paused = false;
    this.#socket?.resume();
  }

  async #reconnect(): Promise<void> {
    this.#socket = undefined;
    this.#paused = false;
    const giveUp = performance.now() + this.options.reconnectTimeoutMs;
    for (let wait = 50; !this.#end && performance.now() < giveUp; wait = Math.min(wait * 2, 1000)) {
      const ended = this.options.serverEnded();
      if (ended !== undefined) this.#lose({ kind: "unreachable", reason: `the Jupyter server is gone: ${ended}` });
      else if (await this.#tryAgain()) return;
      await sleep(wait);
    }
    this.#lose({ kind: "unreachable", reason: "the connection to the Jupyter server broke and did not come back" });
  }

  /** @returns whether there is nothing left to try. */
  async #tryAgain(): Promise<boolean> {
    try {
      const kernel = await findKernel(this.options.client, this.options.kernelId, 5000);
      if (!kernel) {
        this.#lose({ kind: "deleted", reason: "the kernel was deleted on the server" });
        return true;
      }
      const socket = await this.#connect(nextHandshakeMs);
      if (this.#end) socket.close();
      else this.#takeUp(socket);
      return true;
    } catch {
      return false;
    }
  }

  #takeUp(socket: MessageSocket): void {
    this.#socket = socket;
    const unsent = this.#unsent;
    this.#unsent = [];
    for (const message of unsent) this.#send(message);
    this.#frames?.onReconnected();
  }

  #lose(end: KernelEnd): void {
    if (this.#end) return;
    this.#end = end;
    this.#onEnd(end);
    this.#frames?.onLost();
    this.#unsent = [];
    this.#watch.stop();
    this.#socket?.close();
    this.#socket = undefined;
    for (const request of this.#requests.values()) request.fail(new KernelLostError(end));
    this.#requests.clear();
  }
}

/** What it means that a connection is lost which comes back by itself. */
function endOf(error: Error): KernelEnd {
  const { message: reason } = error;
  if (ExecutorStoppedError.isInstance(error)) return { kind: "taken", reason, error };
  return { kind: error instanceof PlaceGone ? "died" : "unreachable", reason };
}
