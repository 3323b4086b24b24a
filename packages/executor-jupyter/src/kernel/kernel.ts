import { BackendUnavailableError } from "@fenced/core";
import { afterMs, joinSignals, untilAborted, within } from "@fenced/core/abort";
import { textField } from "../fields.ts";
import type { ServerClient } from "../servers/server-client.ts";
import { type FrameEvents, KernelLink, type KernelLinkOptions } from "./kernel-link.ts";
import { type KernelEnd, KernelLostError, type KernelRequest } from "./kernel-request.ts";
import { interruptKernel } from "./kernels.ts";

/** Milliseconds between checks whether the kernel is ready. */
const askAgainMs = 1000;

/** Code to run, and how. */
export interface ExecuteContent {
  readonly code: string;
  /** Expressions to evaluate after the code, by name. */
  readonly expressions?: Readonly<Record<string, string>>;
  /** Whether the kernel may ask for input. Default: false. */
  readonly input?: boolean;
  /** Whether its output is read. Default: false. */
  readonly visible?: boolean;
  /** Whether it is a cell of the user: it gets the next number, and enters the kernel's history. Default: false. */
  readonly counted?: boolean;
}

/** A kernel that answers. */
export class Kernel {
  readonly id: string;
  /** The language that it reports, in lower case. */
  readonly language: string;
  readonly #client: ServerClient;
  readonly #link: KernelLink;

  private constructor(options: KernelLinkOptions, link: KernelLink, language: string) {
    this.id = options.kernelId;
    this.language = language;
    this.#client = options.client;
    this.#link = link;
  }

  /**
   * Connects to a kernel and waits until it answers.
   *
   * @throws BackendUnavailableError if it does not; the cause is a `KernelLostError` if it is gone, or stays silent for
   * `readyWithinMs` milliseconds.
   */
  static async connect(
    options: KernelLinkOptions & { readonly readyWithinMs: number },
    signal: AbortSignal,
  ): Promise<Kernel> {
    const { readyWithinMs } = options;
    const limit = new AbortController();
    const silence = new KernelLostError({ kind: "unreachable", reason: `no answer after ${readyWithinMs} ms` });
    const clear = afterMs(readyWithinMs, () => limit.abort(silence));
    let link: KernelLink | undefined;
    try {
      // A server may take a minute to accept a connection to a kernel that is silent.
      const patience = joinSignals(signal, limit.signal);
      link = await KernelLink.open(options, patience);
      const language = await untilReady(link, patience);
      return new Kernel(options, link, language);
    } catch (cause) {
      link?.close();
      signal.throwIfAborted();
      throw new BackendUnavailableError(`The kernel ${options.kernelId} does not answer: ${String(cause)}`, {
        remedy: "Check the server's log; a kernel that exits immediately often lacks a package.",
        cause,
      });
    } finally {
      clear();
    }
  }

  /** Why the kernel is gone, once it is. */
  get end(): KernelEnd | undefined {
    return this.#link.end;
  }

  /** Calls `action` once, as soon as the kernel is gone, unless it was released. */
  whenEnded(action: (end: KernelEnd) => void): void {
    this.#link.whenEnded(action);
  }

  /** Runs code; the request yields its outputs. */
  execute({ code, expressions, input, visible = false, counted = false }: ExecuteContent): KernelRequest {
    const content = {
      code,
      silent: !visible,
      store_history: counted,
      user_expressions: expressions ?? {},
      allow_stdin: input ?? false,
      stop_on_error: false,
    };
    return this.#link.request("execute_request", "shell", content, { outputs: visible });
  }

  /** Sends the helper in the kernel a request that it answers even while code runs. */
  control(content: Readonly<Record<string, unknown>>): KernelRequest {
    return this.#link.request("fenced_request", "control", content, { outputs: false });
  }

  /** Sends frames of connections to the helper. */
  sendFrames(content: Readonly<Record<string, unknown>>, frames: readonly Uint8Array[]): void {
    this.#link.sendFrames(content, frames);
  }

  /** Passes frames that the helper sends to `events`. */
  takeFrames(events: FrameEvents): void {
    this.#link.takeFrames(events);
  }

  /** Gives the kernel the line of input that it asked for. */
  reply(value: string): void {
    this.#link.reply(value);
  }

  /** Interrupts the kernel through the server, and with it everything that it has started. */
  async interrupt(): Promise<void> {
    await interruptKernel(this.#client, this.id);
  }

  /** Releases the kernel, which keeps running. */
  disconnect(): void {
    this.#link.close();
  }
}

/**
 * Asks until both the answer and its echo on the output channel arrive: until the subscription to outputs exists, the
 * first ones would be lost.
 */
async function untilReady(link: KernelLink, signal: AbortSignal): Promise<string> {
  for (;;) {
    const { finished } = link.request("kernel_info_request", "shell", {}, { outputs: false });
    const answer = await untilAborted(within(askAgainMs, finished), signal);
    if (answer !== undefined) return languageOf(answer);
  }
}

function languageOf(answer: Readonly<Record<string, unknown>>): string {
  return textField(answer["language_info"], "name").slice(0, 100).toLowerCase();
}
