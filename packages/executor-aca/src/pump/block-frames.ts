import { isJsonValue, JsonLimitError, type JsonValue, parseJson } from "@fenced/core";
import type { BlockEvent } from "@fenced/executor-kit";
import type { FrameConsumer } from "@fenced/executor-kit/supervisor";
import * as z from "zod";
import { displayFrame } from "./pump-line.ts";

/** The pump's report on the end of a block. */
export interface BlockEnd {
  readonly exit: number;
  /** Whether the block has a value or figures, which the service shows on request. */
  readonly shows: boolean;
}

const blockEnd: z.ZodType<BlockEnd> = z.object({ exit: z.int().min(0).max(255), shows: z.boolean() });

/** What a block displays, by type. */
type Bundle = Readonly<Record<string, JsonValue>>;

const bundleForm: z.ZodType<Bundle> = z.custom<Bundle>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value) && isJsonValue(value),
);

/** Maximum bytes of one display; the pump sends less. */
const longestDisplay = 32 * 1024 * 1024;

/** A piece of a block's output, or something that it displays. */
export type Printed = Extract<BlockEvent, { readonly type: "stdout" | "stderr" }> | { readonly bundle: Bundle };

/** Collects the pump's reports on one block. */
export class BlockFrames implements FrameConsumer {
  readonly number: number;
  end: BlockEnd | undefined;
  /** Whether the next output to standard output begins a line. */
  startsLine = true;
  readonly #printed: Printed[] = [];
  #display: Buffer[] = [];

  constructor(number: number) {
    this.number = number;
  }

  output(type: "stdout" | "stderr", block: number, data: Buffer): void {
    if (block !== this.number || this.end || data.length === 0) return;
    this.#printed.push({ type, data });
    if (type === "stdout") this.startsLine = data.at(-1) === 10;
  }

  /** @throws Error if the pump cannot have sent it. */
  report(type: number, block: number, payload: Buffer): void {
    if (block !== this.number || this.end) return;
    if (type !== displayFrame) {
      this.end = blockEnd.parse(parseJson(payload));
      return;
    }
    this.#display.push(payload.subarray(1));
    const length = this.#display.reduce((sum, piece) => sum + piece.length, 0);
    if (length > longestDisplay) throw new Error("a display is longer than the pump allows");
    if (payload[0] !== 1) return;
    const display = Buffer.concat(this.#display);
    this.#display = [];
    this.#printed.push(readDisplay(display));
  }

  /** The output since the last call. */
  take(): readonly Printed[] {
    return this.#printed.splice(0);
  }
}

/** The display, or a note that it takes too much memory. */
function readDisplay(bytes: Buffer): Printed {
  try {
    return { bundle: bundleForm.parse(parseJson(bytes)) };
  } catch (error) {
    if (!(error instanceof JsonLimitError)) throw error;
    return { type: "stderr", data: `A rich output was left out: ${error.message}\n` };
  }
}
