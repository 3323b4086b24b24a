import type { BlockEvent } from "../run/block-run.ts";
import type { OutputPiece } from "../run/output-queue.ts";
import type { BlockDisplays } from "./display-board.ts";
import { DisplayMessages, ForgedDisplay } from "./display-messages.ts";

/** What an interpreter sends: `rich` is anything besides standard output and standard error, see `DisplayMessages`. */
export type RichPiece = OutputPiece<"stdout" | "stderr" | "rich">;

/** Turns an interpreter's rich output into displays. */
export class RichEvents {
  readonly #displays: BlockDisplays;
  readonly #end: () => void;
  readonly #messages = new DisplayMessages();

  /** @param end - called if the messages are not the interpreter's, so the code must have written them. */
  constructor(displays: BlockDisplays, end: () => void) {
    this.#displays = displays;
    this.#end = end;
  }

  /**
   * The events of a block.
   *
   * @param pieces - what the interpreter outputs.
   * @param left - the outcome if the consumer leaves before the last event.
   */
  async *of<End>(pieces: AsyncGenerator<RichPiece, End, void>, left: End): AsyncGenerator<BlockEvent, End, void> {
    let forged = false;
    try {
      for (;;) {
        const { value, done } = await pieces.next();
        if (done === true) {
          yield* this.#displays.end();
          return value;
        }
        const { type, data } = value;
        if (type !== "rich") {
          yield* this.#displays.cleared([{ type, data }]);
        } else if (!forged) {
          try {
            yield* await this.#shown(data);
          } catch (error) {
            if (!(error instanceof ForgedDisplay)) throw error;
            forged = true;
            yield { type: "stderr", data: `${error.message}: the Python session was ended.\n` };
            this.#end();
          }
        }
      }
    } finally {
      await pieces.return(left);
    }
  }

  async #shown(data: Uint8Array): Promise<BlockEvent[]> {
    const events: BlockEvent[] = [];
    for (const message of this.#messages.push(data)) events.push(...(await this.#displays.take(message)));
    return events;
  }
}
