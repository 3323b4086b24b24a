import { unwatched } from "@fenced/core/telemetry";
import type { KernelEnd } from "./kernel-request.ts";
import type { KernelModel } from "./kernels.ts";

const intervalMs = 2000;
/** How often in a row the server must leave the question unanswered before it counts as gone, five seconds each. */
const silentLooks = 6;
/** How often in a row a kernel must be seen idle, in silence, before its answer counts as lost. */
const idleLooks = 3;

const serverSilent: KernelEnd = { kind: "unreachable", reason: "the Jupyter server does not answer" };

/** What the watch works with. */
export interface KernelWatchOptions {
  /** Asks the server for the kernel; `undefined`: there is none. */
  readonly look: () => Promise<KernelModel | undefined>;
  /** Whether nothing that came in is still to be read, and the connection stands. */
  readonly isSilent: () => boolean;
  /** Whether the kernel answers later questions, but not those that were asked before. */
  readonly probe: () => Promise<boolean>;
  readonly onEnd: (end: KernelEnd) => void;
}

/**
 * Asks the server about the kernel while requests are under way and nothing is heard: a kernel that somebody deleted,
 * or whose answer got lost, would be waited for for ever.
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
      // A connection to a machine that is gone, or to a server that was stopped, never breaks by itself.
      this.#unanswered += 1;
      if (this.#timer && this.#unanswered >= silentLooks) this.#options.onEnd(serverSilent);
    } finally {
      this.#looking = false;
    }
  }

  async #judge(kernel: KernelModel | undefined): Promise<void> {
    if (!this.#timer) return;
    if (kernel?.executionState === "dead") this.#options.onEnd({ kind: "died", reason: "the kernel died" });
    if (!kernel) this.#options.onEnd({ kind: "deleted", reason: "the kernel was deleted on the server" });
    this.#idleSeen = kernel?.executionState === "idle" ? this.#idleSeen + 1 : 0;
    if (this.#idleSeen < idleLooks) return;
    if (!(await this.#options.probe())) return;
    this.#options.onEnd({ kind: "died", reason: "the kernel was restarted, or its answer was lost" });
  }
}
