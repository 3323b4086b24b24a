import { ByteQueue, JsonLimitError, type JsonLimits, parseJson } from "@fenced/core";
import type { RichOutput } from "./display-board.ts";

/** Maximum length of a message in bytes; anything longer is forged. `displays.py` knows it, too. */
export const longestDisplay = 33_554_432;

/**
 * What the JSON of a rich output may contain. With these and `longestDisplay`, no output keeps this process busy for much
 * longer than a fifth of a second at a time.
 */
export const displayLimits: JsonLimits = { maxValues: 400_000, maxNames: 100_000 };

/** What an interpreter sends in addition to its output. */
export type DisplayMessage =
  | { readonly clear: true; readonly wait: boolean }
  /** Something was displayed that takes too much memory, for the reason given. */
  | { readonly leftOut: string }
  | RichOutput;

/** Code wrote something other than a display to the display channel. */
export class ForgedDisplay extends Error {}

/** Reads length-prefixed messages from chunks of any size. The running code can write anything there. */
export class DisplayMessages {
  readonly #bytes = new ByteQueue();
  /** Length of the current message, once it is known. */
  #wanted: number | undefined;

  /**
   * @returns the messages that are now complete.
   * @throws ForgedDisplay if the bytes are not messages.
   */
  push(chunk: Uint8Array): DisplayMessage[] {
    this.#bytes.add(chunk);
    const found: DisplayMessage[] = [];
    for (;;) {
      if (this.#wanted === undefined) {
        if (this.#bytes.length < 4) return found;
        this.#wanted = Buffer.from(this.#bytes.take(4)).readUInt32BE(0);
        if (this.#wanted > longestDisplay) throw new ForgedDisplay("A display is too long");
      }
      if (this.#bytes.length < this.#wanted) return found;
      found.push(readDisplayMessage(this.#bytes.take(this.#wanted)));
      this.#wanted = undefined;
    }
  }
}

/** @throws ForgedDisplay if the bytes are not a message. */
export function readDisplayMessage(bytes: Uint8Array): DisplayMessage {
  let message: unknown;
  try {
    message = parseJson(bytes, displayLimits);
  } catch (error) {
    if (error instanceof JsonLimitError) return { leftOut: error.message };
    throw new ForgedDisplay("A display is not JSON");
  }
  if (typeof message !== "object" || message === null) throw new ForgedDisplay("A display is not an object");
  const field = (name: string): unknown => Reflect.get(message, name);
  if (field("clear") === true) return { clear: true, wait: field("wait") === true };
  const id = field("id");
  return {
    data: field("data"),
    isUpdate: field("update") === true,
    isQuiet: field("quiet") === true,
    ...(typeof id === "string" && { displayId: id }),
  };
}
