import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { isStatusMsg, type IMessage } from "@jupyterlab/services/lib/kernel/messages.js";
import { textField } from "../fields.ts";
import type { ServerClient } from "../servers/server-client.ts";
import { KernelLostError, type KernelEnd } from "./kernel-end.ts";
import { KernelRequest } from "./kernel-request.ts";
import { KernelSocket } from "./kernel-socket.ts";
import { KernelWatch } from "./kernel-watch.ts";
import { findKernel } from "./kernels.ts";
import { createRequest, type RequestChannel, type RequestType } from "./wire-message.ts";

/** Bytes of output that wait here for their reader before the socket is paused, and under which it goes on. */
const [mostWaiting, littleWaiting] = [2_097_152, 524_288];

/** Milliseconds for a WebSocket's handshake: a server that starts many kernels at once takes long for the first. */
const [firstHandshakeMs, nextHandshakeMs] = [90_000, 5000];

/** What a link needs to know. */
export interface KernelLinkOptions {
  readonly client: ServerClient;
  readonly kernelId: string;
  /** Milliseconds for which a server that went away is called again. */
  readonly reconnectTimeoutMs: number;
  /** Why the server has ended, as soon as that is known. */
  readonly serverEnded: () => string | undefined;
}

/**
 * The way to a kernel: sends requests, hands answers to them, comes back when the connection breaks, and finds out
 * when the kernel is gone. Every request ends: finished, or rejected with a `KernelLostError`.
 */
export class KernelLink {
  readonly #options: KernelLinkOptions;
  /** The same after a reconnection: by it the server knows for whom it has kept messages. */
  readonly #session = randomUUID();
  readonly #requests = new Map<string, KernelRequest>();
  /** What came up while there was no connection, in its order. */
  #unsent: IMessage[] = [];
  readonly #watch: KernelWatch;
  #socket: KernelSocket | undefined;
  #waiting = 0;
  #paused = false;
  #end: KernelEnd | undefined;

  private constructor(options: KernelLinkOptions) {
    this.#options = options;
    this.#watch = new KernelWatch({
      look: () => findKernel(options.client, options.kernelId, 5000),
      isSilent: () => this.#waiting === 0 && this.#socket !== undefined,
      probe: () => this.#findForgotten(),
      onEnd: (end) => this.#lose(end),
    });
  }

  /** @throws Error if the server does not take the connection. */
  static async open(options: KernelLinkOptions): Promise<KernelLink> {
    const link = new KernelLink(options);
    link.#socket = await link.#connect(firstHandshakeMs);
    return link;
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

  /** Answers a request of the kernel for a line of input. */
  reply(value: string): void {
    const content = { status: "ok", value };
    this.#send(createRequest("input_reply", "stdin", this.#session, content));
  }

  /** Lets go of the kernel; requests under way reject. */
  close(): void {
    this.#lose({ kind: "died", reason: "the connection to the kernel was closed" });
  }

  #follow(request: KernelRequest, message: IMessage): void {
    this.#requests.set(request.id, request);
    this.#watch.start();
    const forget = (): void => {
      this.#requests.delete(request.id);
      if (this.#requests.size === 0) this.#watch.stop();
    };
    request.finished.then(forget, forget);
    this.#send(message);
  }

  #send(message: IMessage): void {
    if (!this.#end && this.#socket?.send(message) !== true) this.#unsent.push(message);
  }

  /** What is still open on a channel after a later question there has been answered was forgotten. */
  async #findForgotten(): Promise<boolean> {
    return (await this.#hasForgotten("shell")) || (await this.#hasForgotten("control"));
  }

  /** A kernel answers in order, but on each channel by itself. */
  async #hasForgotten(channel: RequestChannel): Promise<boolean> {
    const before = [...this.#requests.values()].filter((request) => request.channel === channel);
    if (before.length === 0) return false;
    await this.request("kernel_info_request", channel, {}, { outputs: false }).finished;
    return before.some(({ id }) => this.#requests.has(id));
  }

  async #connect(timeoutMs: number): Promise<KernelSocket> {
    const path = `api/kernels/${encodeURIComponent(this.#options.kernelId)}/channels?session_id=${this.#session}`;
    return KernelSocket.open(
      { address: this.#options.client.address, path, timeoutMs },
      {
        onMessage: (message, bytes) => this.#receive(message, bytes),
        onBroken: () => void this.#reconnect(),
      },
    );
  }

  #receive(message: IMessage, bytes: number): void {
    this.#watch.heard();
    if (this.#endsKernel(message)) return;
    const parent: unknown = Reflect.get(message.parent_header, "msg_id");
    const request = typeof parent === "string" ? this.#requests.get(parent) : undefined;
    if (!request) return;
    this.#waiting += bytes;
    if (this.#waiting > mostWaiting && !this.#paused) {
      this.#paused = true;
      this.#socket?.pause();
    }
    request.accept(message, bytes);
  }

  #endsKernel(message: IMessage): boolean {
    if (message.channel !== "iopub") return false;
    const state = isStatusMsg(message) ? message.content.execution_state : undefined;
    const restarted = textField(message.header, "msg_type") === "shutdown_reply";
    if (state !== "restarting" && state !== "dead" && !restarted) return false;
    this.#lose({ kind: "died", reason: restarted ? "the kernel was shut down or restarted" : "the kernel died" });
    return true;
  }

  #release(bytes: number): void {
    this.#waiting -= bytes;
    if (!this.#paused || this.#waiting > littleWaiting) return;
    this.#paused = false;
    this.#socket?.resume();
  }

  async #reconnect(): Promise<void> {
    this.#socket = undefined;
    this.#paused = false;
    const giveUp = performance.now() + this.#options.reconnectTimeoutMs;
    for (let wait = 50; !this.#end && performance.now() < giveUp; wait = Math.min(wait * 2, 1000)) {
      const ended = this.#options.serverEnded();
      if (ended !== undefined) this.#lose({ kind: "unreachable", reason: `the Jupyter server is gone: ${ended}` });
      else if (await this.#tryAgain()) return;
      await sleep(wait);
    }
    this.#lose({ kind: "unreachable", reason: "the connection to the Jupyter server broke and did not come back" });
  }

  /** @returns whether there is nothing left to try. */
  async #tryAgain(): Promise<boolean> {
    try {
      const kernel = await findKernel(this.#options.client, this.#options.kernelId, 5000);
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

  #takeUp(socket: KernelSocket): void {
    this.#socket = socket;
    const unsent = this.#unsent;
    this.#unsent = [];
    for (const message of unsent) this.#send(message);
  }

  #lose(end: KernelEnd): void {
    if (this.#end) return;
    this.#end = end;
    this.#unsent = [];
    this.#watch.stop();
    this.#socket?.close();
    this.#socket = undefined;
    for (const request of this.#requests.values()) request.fail(new KernelLostError(end));
    this.#requests.clear();
  }
}
