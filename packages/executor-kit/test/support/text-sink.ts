import type { MimeBundle } from "@fenced/core";
import type { BlockEvent, Sink } from "@fenced/executor-kit";

/** Keeps everything that a program outputs. */
export class TextSink implements Sink {
  stdout = "";
  stderr = "";
  readonly displays: MimeBundle[] = [];
  readonly signal: AbortSignal;
  /** Resolves when there is output. */
  readonly begun: Promise<void>;
  #begin: () => void = () => {};
  readonly #room: Promise<void> | undefined;

  /** @param room - what each write waits for. Default: nothing. */
  constructor(signal: AbortSignal = new AbortController().signal, room?: Promise<void>) {
    this.signal = signal;
    this.#room = room;
    this.begun = new Promise((resolve) => {
      this.#begin = resolve;
    });
  }

  write(event: BlockEvent): Promise<void> | undefined {
    if (event.type === "stdout" || event.type === "stderr") this[event.type] += String(event.data);
    else if (event.type === "display") this.displays.push(event.display.data);
    this.#begin();
    return this.#room;
  }
}
