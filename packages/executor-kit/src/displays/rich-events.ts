import { joinSignals } from "@fenced/core/abort";
import type { BlockEvent } from "../run/block-run.ts";
import { type OutputPiece, type Sink, writeAll } from "../run/sink.ts";
import type { BlockDisplays } from "./display-board.ts";
import { type DisplayMessage, DisplayMessages, ForgedDisplay } from "./display-messages.ts";

/** What an interpreter sends: `rich` is anything besides standard output and standard error, see `DisplayMessages`. */
export type RichPiece = OutputPiece<"stdout" | "stderr" | "rich">;

/** Turns what an interpreter outputs during a block into the block's events, in order. */
export class RichEvents implements Sink<RichPiece> {
  /** Also aborted if the messages are not the interpreter's, so the code must have written them. */
  readonly signal: AbortSignal;
  readonly #displays: BlockDisplays;
  readonly #sink: Sink;
  readonly #forging = new AbortController();
  readonly #messages = new DisplayMessages();
  /** Resolves when everything so far is saved and written; absent if it is. */
  #saving: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(displays: BlockDisplays, sink: Sink) {
    this.#displays = displays;
    this.#sink = sink;
    this.signal = joinSignals(sink.signal, this.#forging.signal);
  }

  /** True if the code wrote something other than displays where the interpreter sends them. */
  get isForged(): boolean {
    return this.#forging.signal.aborted;
  }

  /** Runs a block to its end, with all of its events. */
  async of<End>(run: (sink: Sink<RichPiece>) => Promise<End>): Promise<End> {
    const end = await run(this);
    await this.#saving;
    if (this.#failure) throw this.#failure.error;
    void this.#pass(this.#displays.end());
    return end;
  }

  write({ type, data }: RichPiece): Promise<void> | undefined {
    if (type !== "rich") {
      if (!this.#saving) return this.#pass(this.#displays.cleared([{ type, data }]));
      const copy = Buffer.from(data);
      return this.#later(() => writeAll(this.#sink, this.#displays.cleared([{ type, data: copy }])));
    }
    if (this.isForged) return undefined;
    try {
      const messages = this.#messages.push(data);
      return messages.length === 0 ? undefined : this.#later(() => this.#show(messages));
    } catch (error) {
      if (!(error instanceof ForgedDisplay)) throw error;
      this.#forging.abort();
      const sentence = `${error.message}: the Python session was ended.\n`;
      return this.#later(() => writeAll(this.#sink, [{ type: "stderr", data: sentence }]));
    }
  }

  /** Does something once everything before it is written. */
  #later(next: () => Promise<void>): Promise<void> {
    const saving = this.#after(this.#saving, next);
    this.#saving = saving;
    return saving.then(() => {
      if (this.#saving === saving) this.#saving = undefined;
    });
  }

  async #after(before: Promise<void> | undefined, next: () => Promise<void>): Promise<void> {
    try {
      await before;
      await next();
    } catch (error) {
      this.#failure ??= { error };
    }
  }

  async #show(messages: readonly DisplayMessage[]): Promise<void> {
    for (const message of messages) await writeAll(this.#sink, await this.#displays.take(message));
  }

  /** @returns when there is room for more. */
  #pass(events: readonly BlockEvent[]): Promise<void> | undefined {
    let room: Promise<void> | undefined;
    for (const event of events) room = this.#sink.write(event) ?? room;
    return room;
  }
}
