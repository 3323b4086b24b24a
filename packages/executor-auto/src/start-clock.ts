import { BackendUnavailableError, type CodeExecutor } from "@fenced/core";
import { lateSignal, untilAborted, within } from "@fenced/core/abort";
import { capitalized } from "./explain.ts";
import type { Fence } from "./fences.ts";
import type { DownloadProgress, OpenExecutorOptions } from "./open-executor-options.ts";

type StartLimits = Pick<OpenExecutorOptions, "startTimeoutMs" | "pullTimeoutMs" | "onPullProgress" | "signal">;

/** How long to wait for an abandoned executor, in milliseconds. Most need no time. */
const undoMs = 10_000;

/** Limits the time for one executor's start. A download that makes progress extends it. */
export class StartClock {
  /** Pass this to the executor. */
  readonly onPullProgress: (progress: DownloadProgress) => void;
  readonly #title: string;
  readonly #startMs: number;
  readonly #signal: AbortSignal | undefined;
  readonly #ending = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #download: { readonly image: string; readonly began: number } | undefined;

  /** @param fence - whose executor is to start. */
  constructor(
    fence: Pick<Fence, "title" | "startTimeoutMs">,
    { startTimeoutMs = fence.startTimeoutMs, pullTimeoutMs = 300_000, onPullProgress, signal }: StartLimits,
  ) {
    this.#title = fence.title;
    this.#startMs = startTimeoutMs;
    this.#signal = signal;
    this.onPullProgress = (progress) => {
      this.#download ??= { image: progress.image, began: performance.now() };
      if (performance.now() - this.#download.began < pullTimeoutMs) this.#timer?.refresh();
      onPullProgress?.(progress);
    };
  }

  /**
   * Starts the executor.
   *
   * @throws BackendUnavailableError if that takes too long; the signal's reason if it aborts; what the executor
   * throws.
   */
  async start(executor: CodeExecutor): Promise<void> {
    const giveUp = (): void => this.#ending.abort(this.#signal?.reason);
    this.#signal?.throwIfAborted();
    this.#signal?.addEventListener("abort", giveUp, { once: true });
    this.#timer = setTimeout(() => this.#ending.abort(this.#late()), this.#startMs);
    const { signal: ending } = this.#ending;
    // Aborts if the executor does not undo its start in time either.
    using overdue = lateSignal(ending, undoMs);
    try {
      await untilAborted(executor.start({ signal: ending }), overdue.signal);
    } finally {
      clearTimeout(this.#timer);
      this.#signal?.removeEventListener("abort", giveUp);
    }
  }

  #late(): BackendUnavailableError {
    if (this.#download) {
      const { image, began } = this.#download;
      const seconds = Math.round((performance.now() - began) / 1000);
      return new BackendUnavailableError(`The image "${image}" could not be downloaded within ${seconds} s`, {
        remedy: `Run \`docker pull ${image}\` once, or raise \`pullTimeoutMs\`.`,
      });
    }
    return new BackendUnavailableError(`${capitalized(this.#title)} did not start within ${this.#startMs / 1000} s`, {
      remedy: "Check whether this machine or its daemon is overloaded, or raise `startTimeoutMs`.",
    });
  }
}

/** Stops an executor for good. One that does not stop in time is left alone. */
export async function endExecutor(executor: CodeExecutor): Promise<void> {
  // An executor that failed to start has said why; failing to stop as well adds nothing.
  await within(
    undoMs,
    executor[Symbol.asyncDispose]().catch(() => {}),
  );
}
