import { unwatched } from "@fenced/core/telemetry";
import type { KernelEnd } from "./kernel-end.ts";
import type { KernelModel } from "./kernels.ts";

const intervalMs = 2000;
/** How often in a row a kernel must be seen idle, in silence, before its answer counts as lost. */
const idleLooks = 3;

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
  }

  async #tick(): Promise<void> {
    const silent = this.#options.isSilent() && performance.now() - this.#heardAt >= intervalMs;
    if (!silent || this.#looking) return;
    this.#looking = true;
    try {
      await this.#judge(await this.#options.look());
    } catch {
      // A server that does not answer breaks the connection sooner or later, and that is noticed elsewhere.
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
