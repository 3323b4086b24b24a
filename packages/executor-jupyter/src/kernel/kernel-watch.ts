import { unwatched } from "@fenced/core/telemetry";
import { kernelDied, type KernelEnd } from "./kernel-request.ts";
import type { KernelModel } from "./kernels.ts";

const intervalMs = 2000;
/** Consecutive requests left unanswered for five seconds each, after which the server counts as gone. */
const silentLooks = 6;
/** How often in a row a kernel must be idle and silent before its answer counts as lost. */
const idleLooks = 3;

const serverSilent: KernelEnd = { kind: "unreachable", reason: "the Jupyter server does not answer" };

/** Options of a `KernelWatch`. */
export interface KernelWatchOptions {
  /** Asks the server for the kernel; `undefined` if there is none. */
  readonly look: () => Promise<KernelModel | undefined>;
  /** Whether everything that arrived has been read and the connection is open. */
  readonly isSilent: () => boolean;
  /** Whether the kernel answers later requests but not the earlier ones. */
  readonly probe: () => Promise<boolean>;
  readonly onEnd: (end: KernelEnd) => void;
}

/**
 * Asks the server about the kernel while requests are in progress and nothing arrives. Without it, a request would
 * wait forever for a kernel that was deleted or whose answer got lost.
 */
export class KernelWatch {
  readonly #options: KernelWatchOptions;
  #timer: NodeJS.Timeout | undefined;
  #heardAt = 0;
  #idleSeen = 0;
  #unanswered = 0;
  #looking = false;

  constructor(options: KernelWatchOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#timer) return;
    this.heard();
    this.#timer = unwatched(() => setInterval(() => void this.#tick(), intervalMs));
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  heard(): void {
    this.#heardAt = performance.now();
    this.#idleSeen = 0;
    this.#unanswered = 0;
  }

  async #tick(): Promise<void> {
    const silent = this.#options.isSilent() && performance.now() - this.#heardAt >= intervalMs;
    if (!silent || this.#looking) return;
    this.#looking = true;
    try {
      const kernel = await this.#options.look();
      this.#unanswered = 0;
      await this.#judge(kernel);
    } catch {
      // A connection to a dead machine or a stopped (SIGSTOP) server never breaks by itself.
      this.#unanswered += 1;
      if (this.#timer && this.#unanswered >= silentLooks) this.#options.onEnd(serverSilent);
    } finally {
      this.#looking = false;
    }
  }

  async #judge(kernel: KernelModel | undefined): Promise<void> {
    if (!this.#timer) return;
    if (kernel?.executionState === "dead") this.#options.onEnd({ kind: "died", reason: kernelDied });
    if (!kernel) this.#options.onEnd({ kind: "deleted", reason: "the kernel was deleted on the server" });
    this.#idleSeen = kernel?.executionState === "idle" ? this.#idleSeen + 1 : 0;
    if (this.#idleSeen < idleLooks) return;
    if (!(await this.#options.probe())) return;
    this.#options.onEnd({ kind: "died", reason: "the kernel was restarted, or its answer was lost" });
  }
}
