import type { JsonObject } from "@fenced/core";
import { ConnectError } from "../envd/connect-error.ts";

/** Events that wait for their reader, and the length of their texts. */
const [mostEvents, mostBytes] = [10_000, 4_194_304];

/** The events of one watched directory, until it is watched no more. */
export class WatchedEvents {
  #events: JsonObject[] = [];
  #bytes = 0;
  #end: { readonly error: Error | undefined } | undefined;
  #wake: () => void = () => {};

  /** No more will come. */
  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  /** @param bytes - the length of its text. */
  push(event: JsonObject, bytes: number): void {
    if (this.#end) return;
    this.#bytes += bytes;
    if (this.#events.length < mostEvents && this.#bytes <= mostBytes) this.#events.push(event);
    else this.end(new ConnectError("resource_exhausted", "Events were not read fast enough; watch again"));
    this.#wake();
  }

  /** See `hasEnded`. */
  end(error?: Error): void {
    this.#end ??= { error };
    this.#wake();
  }

  /**
   * Returns all events that wait.
   *
   * @throws the error with which they ended, if none is left.
   */
  take(): JsonObject[] {
    const taken = this.#events;
    if (taken.length === 0 && this.#end?.error) throw this.#end.error;
    [this.#events, this.#bytes] = [[], 0];
    return taken;
  }

  /** Waits for an event or the end. */
  async arrival(): Promise<true> {
    if (this.#events.length === 0 && !this.#end) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return true;
  }

  /** Yields all events until the end. @throws the error with which they ended. */
  async *read(): AsyncGenerator<JsonObject, void, void> {
    for (;;) {
      const events = this.take();
      yield* events;
      if (events.length === 0 && this.#end) return;
      await this.arrival();
    }
  }
}
