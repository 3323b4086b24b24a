import { BackendUnavailableError } from "@fenced/core";
import { afterMs, joinSignals, untilAborted, within } from "@fenced/core/abort";
import { textField } from "../fields.ts";
import { KernelLink, type KernelLinkOptions } from "./kernel-link.ts";
import { KernelLostError, type KernelRequest } from "./kernel-request.ts";
import { kernelPath } from "./kernels.ts";

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
export class Kernel extends KernelLink {
  #language = "";

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
    const kernel = new Kernel(options);
    try {
      // A server may take a minute to accept a connection to a kernel that is silent.
      const patience = joinSignals(signal, limit.signal);
      await kernel.open(patience);
      kernel.#language = await untilReady(kernel, patience);
      return kernel;
    } catch (cause) {
      kernel.disconnect();
      signal.throwIfAborted();
      throw new BackendUnavailableError(`The kernel ${options.kernelId} does not answer: ${String(cause)}`, {
        remedy: "Check the server's log; a kernel that exits immediately often lacks a package.",
        cause,
      });
    } finally {
      clear();
    }
  }

  /**
   * A kernel that has already answered, over a connection that comes back by itself.
   *
   * @param language - what it has reported.
   */
  static async over(
    options: KernelLinkOptions & Required<Pick<KernelLinkOptions, "openSocket">>,
    language: string,
  ): Promise<Kernel> {
    const kernel = new Kernel(options);
    kernel.#language = language;
    await kernel.open(new AbortController().signal);
    return kernel;
  }

  get id(): string {
    return this.options.kernelId;
  }

  /** The language that it reports, in lower case. */
  get language(): string {
    return this.#language;
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
    return this.request("execute_request", "shell", content, { outputs: visible });
  }

  /** Sends the helper in the kernel a request that it answers even while code runs. */
  control(content: Readonly<Record<string, unknown>>): KernelRequest {
    return this.request("fenced_request", "control", content, { outputs: false });
  }

  /** Interrupts the kernel through the server; with most servers, also all processes of its group. */
  async interrupt(): Promise<void> {
    await this.options.client.json(`${kernelPath(this.id)}/interrupt`, { method: "POST", json: {} });
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
