import { ArrivalOrder, type StreamName, type Stretch } from "./arrival-order.ts";
import { CharacterJoiner, continuationBytes, unfinishedBytes } from "./character-joiner.ts";
import { HeadAndTail } from "./head-and-tail.ts";

/**
 * Collects what a block writes: both streams apart and in order together. Of each of the three it keeps head and
 * tail, half of `maxBytes` each. Every byte is copied once: the text of both together is made from the two streams
 * and the order of their arrival.
 */
export class OutputCollector {
  readonly #maxBytes: number;
  readonly #joiners: Readonly<Record<StreamName, CharacterJoiner>>;
  readonly #kept: Readonly<Record<StreamName, HeadAndTail>>;
  readonly #order: ArrivalOrder;

  /** @param maxBytes - bytes to keep of each stream and of both together. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
    const limits = { head: Math.ceil(maxBytes / 2), tail: Math.floor(maxBytes / 2) };
    this.#joiners = { stdout: new CharacterJoiner(), stderr: new CharacterJoiner() };
    this.#kept = { stdout: new HeadAndTail(limits), stderr: new HeadAndTail(limits) };
    this.#order = new ArrivalOrder(limits);
  }

  /** Takes a piece of output; returns the whole characters that are now complete, in memory shared with `data`. */
  push(name: StreamName, data: Uint8Array | string): readonly Buffer[] {
    return this.#keep(name, this.#joiners[name].push(typeof data === "string" ? Buffer.from(data) : data));
  }

  /** Takes what is left of characters that were never finished. */
  end(name: StreamName): readonly Buffer[] {
    return this.#keep(name, this.#joiners[name].end());
  }

  /** The three texts, with a line in place of a cut, and whether one was cut. Invalid UTF-8 becomes U+FFFD. */
  texts(): { output: string; stdout: string; stderr: string; truncated: boolean } {
    const stdout = this.#kept.stdout.kept();
    const stderr = this.#kept.stderr.kept();
    const head = arrange(this.#order.head(), { stdout, stderr }, { stdout: 0, stderr: 0 });
    const last = this.#order.tail();
    const tail = arrange(
      last,
      { stdout, stderr },
      {
        stdout: stdout.length - lengthOf(last, "stdout"),
        stderr: stderr.length - lengthOf(last, "stderr"),
      },
    );
    return {
      output: this.#text(Buffer.concat([...head, ...tail]), this.#order.total),
      stdout: this.#text(stdout, this.#kept.stdout.total),
      stderr: this.#text(stderr, this.#kept.stderr.total),
      truncated: this.#order.total > this.#maxBytes,
    };
  }

  #keep(name: StreamName, pieces: readonly Buffer[]): readonly Buffer[] {
    for (const piece of pieces) {
      this.#kept[name].push(piece);
      this.#order.push(name, piece.length);
    }
    return pieces;
  }

  /** Characters that the cut goes through are left out with it. */
  #text(kept: Buffer, total: number): string {
    if (total === kept.length) return kept.toString();
    const head = kept.subarray(0, Math.ceil(this.#maxBytes / 2));
    const tail = kept.subarray(head.length);
    const first = head.subarray(0, head.length - unfinishedBytes(head));
    const last = tail.subarray(continuationBytes(tail));
    const cut = total - first.length - last.length;
    return `${first.toString()}\n[... ${cut} bytes of output left out ...]\n${last.toString()}`;
  }
}

/** The stretches' bytes in order, taken from each stream beginning at its place in `from`. */
function arrange(
  stretches: readonly Stretch[],
  kept: Readonly<Record<StreamName, Buffer>>,
  from: Readonly<Record<StreamName, number>>,
): Buffer[] {
  const next = { ...from };
  return stretches.map(({ name, length }) => {
    const start = next[name];
    next[name] += length;
    return kept[name].subarray(start, start + length);
  });
}

function lengthOf(stretches: readonly Stretch[], name: StreamName): number {
  return stretches.reduce((sum, stretch) => sum + (stretch.name === name ? stretch.length : 0), 0);
}
