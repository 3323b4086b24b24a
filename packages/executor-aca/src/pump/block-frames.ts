import { ByteQueue, parseJson } from "@fenced/core";
import type { BlockEvent } from "@fenced/executor-kit";
import { type DisplayMessage, longestDisplay, readDisplayMessage } from "@fenced/executor-kit/displays";
import { type FrameConsumer, frameType } from "@fenced/executor-kit/supervisor";
import * as z from "zod";

/** The pump's report on the end of a block. */
export interface BlockEnd {
  readonly exit: number;
}

const blockEnd: z.ZodType<BlockEnd> = z.object({ exit: z.int().min(0).max(255) });

/** A piece of a block's output, or something that it displays. */
export type Printed =
  | Extract<BlockEvent, { readonly type: "stdout" | "stderr" }>
  /** `startsLine`: whether what is printed of it begins a line. */
  | { readonly message: DisplayMessage; readonly startsLine: boolean };

/** Collects the pump's reports on one block. */
export class BlockFrames implements FrameConsumer {
  readonly number: number;
  end: BlockEnd | undefined;
  #startsLine = true;
  readonly #printed: Printed[] = [];
  readonly #display = new ByteQueue();

  constructor(number: number) {
    this.number = number;
  }

  output(type: "stdout" | "stderr", block: number, data: Buffer): void {
    if (block !== this.number || this.end || data.length === 0) return;
    this.#printed.push({ type, data });
    if (type === "stdout") this.#startsLine = data.at(-1) === 10;
  }

  /** @throws Error if the pump cannot have sent it. */
  report(type: number, block: number, payload: Buffer): void {
    if (block !== this.number || this.end) return;
    if (type !== frameType.display) {
      this.end = blockEnd.parse(parseJson(payload));
      return;
    }
    this.#display.add(payload.subarray(1));
    if (this.#display.length > longestDisplay) throw new Error("a display is longer than the pump allows");
    if (payload[0] !== 1) return;
    this.#printed.push({ message: readDisplayMessage(this.#display.take()), startsLine: this.#startsLine });
    this.#startsLine = true;
  }

  /** The output since the last call. */
  take(): readonly Printed[] {
    return this.#printed.splice(0);
  }
}
