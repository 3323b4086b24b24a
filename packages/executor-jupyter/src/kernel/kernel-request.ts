import { untilAborted } from "@fenced/core/abort";
import type { IMessage } from "@jupyterlab/services/lib/kernel/messages.js";
import { textField } from "../fields.ts";
import type { RequestChannel } from "./wire-message.ts";

/** Why a kernel, or the connection to it, is gone. */
export interface KernelEnd {
  /**
   * `died`: it ended or was restarted; `deleted`: the server no longer knows it; `unreachable`: it or the server does not
   * answer; `taken`: another program has taken it over.
   */
  readonly kind: "died" | "deleted" | "unreachable" | "taken";
  /** A sentence without its full stop, for people. */
  readonly reason: string;
  /** What calls reject with, if it was taken over. */
  readonly error?: Error;
}

/** The reason for a kernel that ended by itself. Servers do not tell why, and lack of memory is the most common cause. */
export const kernelDied = "the kernel died, probably because it ran out of memory";

/** Requests to a lost kernel reject with this. */
export class KernelLostError extends Error {
  readonly end: KernelEnd;

  constructor(end: KernelEnd) {
    super(end.reason);
    this.name = "KernelLostError";
    this.end = end;
  }
}

/**
 * A request to a kernel and its answers. It is finished when its reply and, on the shell channel, the kernel's `idle`
 * have both arrived.
 */
export class KernelRequest {
  readonly id: string;
  readonly channel: RequestChannel;
  /** Resolves with the reply's content when the request is finished; rejects if the kernel or the connection is lost. */
  readonly finished: Promise<Readonly<Record<string, unknown>>>;
  /** Resolves when the kernel has begun to work on it, or never will. */
  readonly begun: Promise<void>;
  /** Whether output was lost on the way. */
  incomplete = false;
  /** When it was finished, as a `performance.now()` time. */
  finishedAt: number | undefined;
  readonly #onTaken: (bytes: number) => void;
  #queue: { readonly message: IMessage; readonly bytes: number }[] = [];
  #reply: Readonly<Record<string, unknown>> | undefined;
  #idle = false;
  #over = false;
  #dropping: boolean;
  #wake: () => void = () => {};
  #resolve: (reply: Readonly<Record<string, unknown>>) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #begin: () => void = () => {};

  /**
   * @param channel - where it travels.
   * @param onTaken - called with the number of received bytes that are no longer held.
   * @param outputs - whether anyone will read the request's output.
   */
  constructor(id: string, options: { channel: RequestChannel; outputs: boolean; onTaken: (bytes: number) => void }) {
    this.id = id;
    this.channel = options.channel;
    this.#onTaken = options.onTaken;
    this.#dropping = !options.outputs;
    this.finished = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.begun = new Promise((resolve) => {
      this.#begin = resolve;
    });
    // A rejected request that nobody waits for must not end the process.
    this.finished.catch(() => {});
  }

  /** Takes a message that answers this request. */
  accept(message: IMessage, bytes: number): void {
    if (message.channel === "iopub" || message.channel === "stdin") this.#acceptOutput(message, bytes);
    else {
      this.#onTaken(bytes);
      this.#reply ??= { ...message.content };
    }
    this.#finishIfComplete();
  }

  /** The next output; `undefined` if there will be none, or when the signal aborts. */
  async next(signal: AbortSignal): Promise<IMessage | undefined> {
    while (this.#queue.length === 0 && !this.#over && !signal.aborted) await this.#woken(signal);
    if (signal.aborted) return undefined;
    const first = this.#queue.shift();
    if (first) this.#onTaken(first.bytes);
    return first?.message;
  }

  /** Drops past and future output: from now on only the end counts. */
  dropOutputs(): void {
    this.#dropping = true;
    for (const { bytes } of this.#queue) this.#onTaken(bytes);
    this.#queue = [];
  }

  /** Takes everything that has arrived so far. */
  takeAll(): IMessage[] {
    const messages = this.#queue.map(({ message }) => message);
    this.dropOutputs();
    return messages;
  }

  fail(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#reject(error);
    this.#begin();
    this.#wake();
  }

  #acceptOutput(message: IMessage, bytes: number): void {
    if (textField(message.header, "msg_type") === "status") {
      this.#onTaken(bytes);
      if (textField(message.content, "execution_state") === "idle") this.#idle = true;
      return;
    }
    this.#begin();
    if (this.#dropping) {
      this.#onTaken(bytes);
      return;
    }
    this.#queue.push({ message, bytes });
    this.#wake();
  }

  #finishIfComplete(): void {
    if (!this.#reply || (this.channel === "shell" && !this.#idle)) return;
    this.#over = true;
    this.finishedAt ??= performance.now();
    this.#resolve(this.#reply);
    this.#begin();
    this.#wake();
  }

  async #woken(signal: AbortSignal): Promise<void> {
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    await untilAborted(woken, signal).catch(() => {});
  }
}
