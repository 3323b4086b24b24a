import type { JsonObject } from "@fenced/core";
import { ConnectError } from "../envd/connect-error.ts";

/** Events that wait for their reader. */
const mostEvents = 10_000;

/** The events of one watched directory, until it is watched no more. */
export class WatchedEvents {
  readonly #events: JsonObject[] = [];
  #end: { readonly error: Error | undefined } | undefined;
  #wake: () => void = () => {};

  push(event: JsonObject): void {
    if (this.#events.length < mostEvents) this.#events.push(event);
    else this.end(new ConnectError("resource_exhausted", "Events were not read fast enough"));
    this.#wake();
  }

  /** No more will come. */
  end(error?: Error): void {
    this.#end ??= { error };
    this.#wake();
  }

  /** Yields all events until the end. @throws the error with which they ended. */
  async *read(): AsyncGenerator<JsonObject, void, void> {
    for (;;) {
      const event = this.#events.shift();
      if (event) yield event;
      else if (this.#end?.error) throw this.#end.error;
      else if (this.#end) return;
      else await this.#arrival();
    }
  }

  #arrival(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}
