import { frameType } from "../wire/wire.ts";
import { ProgramFeed } from "./program-feed.ts";
import type { Send } from "./running-programs.ts";

/** The input of programs that is written while they run, by their numbers. */
export class ProgramFeeds {
  readonly #send: Send;
  readonly #feeds = new Map<number, ProgramFeed>();

  /** @param send - sends a frame to the supervisor. */
  constructor(send: Send) {
    this.#send = send;
  }

  /** Adds one, which sends nothing before it is run. */
  add(number: number, stdin: AsyncIterable<Uint8Array>): ProgramFeed {
    const feed = new ProgramFeed(stdin, (piece) => this.#send(frameType.feed, number, piece));
    this.#feeds.set(number, feed);
    return feed;
  }

  /** Handles a report; an empty one means that the program reads no more. */
  report(number: number, payload: Buffer): void {
    if (payload.length === 0) this.end(number);
    else this.#feeds.get(number)?.taken(payload.readUInt32BE(0));
  }

  end(number: number): void {
    this.#feeds.get(number)?.close();
    this.#feeds.delete(number);
  }

  endAll(): void {
    for (const number of this.#feeds.keys()) this.end(number);
  }
}
