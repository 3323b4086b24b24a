import { cutLine, type OutputLayout } from "@fenced/core";

/** The name of an output stream of a program. */
export type StreamName = "stdout" | "stderr";

/** A piece of kept output. */
interface Excerpt {
  readonly bytes: Buffer;
  /** Lengths of the stretches that came from one stream each, in bytes; negative for standard error. */
  readonly stretches: readonly number[];
}

/** The text of a block's result. */
interface CollectedText {
  /** The output, with a line that marks each cut. Invalid UTF-8 becomes U+FFFD. */
  readonly output: string;
  /** The stream that each part came from; absent if everything is standard output. */
  readonly layout?: OutputLayout;
  readonly truncated: boolean;
  /** Bytes of output that are kept. */
  readonly keptBytes: number;
}

/**
 * Collects what a block writes, in order of arrival. Keeps the head and the tail, up to half of `maxBytes` each, and
 * the stream that each part came from. Copies every byte once.
 */
export class OutputCollector {
  readonly #joiners = { stdout: new CharacterJoiner(), stderr: new CharacterJoiner() };
  readonly #totals: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  readonly #head: LastBytes;
  /** Created once the head is full, since most blocks write less. */
  #tail: LastBytes | undefined;
  readonly #maxBytes: number;
  /** The head is complete, although it has room. */
  #isCut = false;

  /** @param maxBytes - bytes to keep. */
  constructor(maxBytes: number) {
    this.#head = new LastBytes(Math.ceil(maxBytes / 2));
    this.#maxBytes = maxBytes;
  }

  /** Adds a piece of output; returns the characters that are now complete, in memory shared with `data`. */
  push(name: StreamName, data: Uint8Array | string): readonly Buffer[] {
    return this.#keep(name, this.#joiners[name].push(typeof data === "string" ? Buffer.from(data) : data));
  }

  /** Counts output that is missing. What follows it is not joined with what was before. */
  skip(name: StreamName, bytes: number): void {
    if (bytes <= 0) return;
    this.#totals[name] += bytes;
    this.#isCut = true;
  }

  /** Returns what is left of incomplete characters. */
  end(name: StreamName): readonly Buffer[] {
    return this.#keep(name, this.#joiners[name].end());
  }

  text(): CollectedText {
    const first = this.#head.kept();
    const last = this.#tail?.kept() ?? { bytes: Buffer.alloc(0), stretches: [] };
    const keptBytes = first.bytes.length + last.bytes.length;
    if (this.#totals.stdout + this.#totals.stderr === keptBytes) {
      const { texts, parts } = decode(this.#tail ? asOne(first, last) : first);
      return { output: texts.join(""), ...layoutOf(parts), truncated: false, keptBytes };
    }
    const head = withoutHalfCharacter(first, "last");
    const tail = withoutHalfCharacter(last, "first");
    const all = [...head.stretches, ...tail.stretches];
    const [stdout, stderr] = [this.#cut("stdout", all), this.#cut("stderr", all)];
    const [before, after] = [decode(head), decode(tail)];
    return {
      output: [...before.texts, cutLine(stdout + stderr), ...after.texts].join(""),
      ...layoutOf([...before.parts, ...after.parts], { after: before.parts.length, stdout, stderr }),
      truncated: true,
      keptBytes,
    };
  }

  /** Bytes of a stream that are not in the kept stretches. */
  #cut(name: StreamName, kept: readonly number[]): number {
    const own = kept.filter((length) => length > 0 === (name === "stdout"));
    return own.reduce((cut, length) => cut - Math.abs(length), this.#totals[name]);
  }

  #keep(name: StreamName, pieces: readonly Buffer[]): readonly Buffer[] {
    for (const piece of pieces) {
      const room = this.#isCut ? 0 : this.#head.room;
      this.#head.push(name, piece.subarray(0, room));
      if (piece.length > room) {
        this.#tail ??= new LastBytes(Math.floor(this.#maxBytes / 2));
        this.#tail.push(name, piece.subarray(room));
      }
      this.#totals[name] += piece.length;
    }
    return pieces;
  }
}

/** Keeps copies of the last bytes of a possibly endless stream. Memory grows with what is kept, not with the limit. */
class LastBytes {
  readonly #limit: number;
  /** A ring once it has `limit` bytes; the oldest byte is then at `#end`. */
  #bytes = Buffer.alloc(0);
  #used = 0;
  #end = 0;
  /**
   * Lengths of stretches, negative for standard error. Plain numbers, since a program may switch streams with every
   * byte.
   */
  #lengths: number[] = [];
  #first = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Number of bytes that can be added without dropping others. */
  get room(): number {
    return this.#limit - this.#used;
  }

  push(name: StreamName, bytes: Buffer): void {
    const last = bytes.subarray(Math.max(0, bytes.length - this.#limit));
    if (last.length === 0) return;
    this.#order(name, last.length);
    this.#forget(last.length - this.room);
    const used = Math.min(this.#used + last.length, this.#limit);
    this.#bytes = withRoom(this.#bytes, this.#used, used, this.#limit);
    const untilWrap = last.copy(this.#bytes, this.#end);
    last.copy(this.#bytes, 0, untilWrap);
    this.#used = used;
    this.#end = (this.#end + last.length) % this.#limit;
  }

  kept(): Excerpt {
    const stretches = this.#lengths.slice(this.#first);
    if (this.room > 0) return { bytes: this.#bytes.subarray(0, this.#used), stretches };
    return { bytes: Buffer.concat([this.#bytes.subarray(this.#end), this.#bytes.subarray(0, this.#end)]), stretches };
  }

  #order(name: StreamName, length: number): void {
    const added = name === "stdout" ? length : -length;
    const last = this.#lengths.length - 1;
    const before = this.#lengths[last] ?? 0;
    if (last >= this.#first && before * added > 0) this.#lengths[last] = before + added;
    else this.#lengths.push(added);
  }

  /** Shortens the oldest stretches by `count` bytes; does nothing if it is negative. */
  #forget(count: number): void {
    for (let left = count; left > 0;) {
      const oldest = this.#lengths[this.#first] ?? 0;
      const taken = Math.min(Math.abs(oldest), left);
      if (taken === Math.abs(oldest)) this.#first += 1;
      else this.#lengths[this.#first] = oldest - Math.sign(oldest) * taken;
      left -= taken;
    }
    if (this.#first > 1024 && this.#first * 2 > this.#lengths.length) {
      this.#lengths = this.#lengths.slice(this.#first);
      this.#first = 0;
    }
  }
}

/** Returns `buffer` if it has `needed` bytes, otherwise a larger copy of its first `used` bytes. */
function withRoom(buffer: Buffer<ArrayBuffer>, used: number, needed: number, limit: number): Buffer<ArrayBuffer> {
  if (needed <= buffer.length) return buffer;
  const larger = Buffer.allocUnsafeSlow(Math.min(limit, Math.max(needed, buffer.length * 2, 1024)));
  buffer.copy(larger, 0, 0, used);
  return larger;
}

/** Two excerpts as one; merges a stretch that was split at the border. */
function asOne({ bytes: head, stretches: first }: Excerpt, { bytes: tail, stretches: last }: Excerpt): Excerpt {
  const [end = 0, start = 0] = [first.at(-1), last[0]];
  const stretches = end * start > 0 ? [...first.slice(0, -1), end + start, ...last.slice(1)] : [...first, ...last];
  return { bytes: Buffer.concat([head, tail]), stretches };
}

/** Removes characters that a cut has split. */
function withoutHalfCharacter({ bytes, stretches }: Excerpt, border: "first" | "last"): Excerpt {
  const index = border === "first" ? 0 : stretches.length - 1;
  const length = stretches[index];
  if (length === undefined) return { bytes, stretches };
  const size = Math.abs(length);
  const half =
    border === "first"
      ? continuationBytes(bytes.subarray(0, size))
      : unfinishedBytes(bytes.subarray(bytes.length - size));
  return {
    bytes: border === "first" ? bytes.subarray(half) : bytes.subarray(0, bytes.length - half),
    stretches: stretches.with(index, length - Math.sign(length) * half),
  };
}

/** Decodes the text; the lengths of its parts are in characters. */
function decode({ bytes, stretches }: Excerpt): { readonly texts: string[]; readonly parts: readonly number[] } {
  const whole = bytes.toString();
  // The common case, and much faster: each byte is one character, so the lengths are the same.
  if (whole.length === bytes.length) return { texts: [whole], parts: stretches };
  let at = 0;
  const texts = stretches.map((length) => bytes.toString("utf8", at, (at += Math.abs(length))));
  return { texts, parts: texts.map((text, index) => Math.sign(stretches[index] ?? 0) * text.length) };
}

function layoutOf(
  parts: readonly number[],
  cut?: NonNullable<OutputLayout["cut"]>,
): { readonly layout?: OutputLayout } {
  if (parts.every((part) => part >= 0) && (cut?.stderr ?? 0) === 0) return {};
  return { layout: { parts, ...(cut ? { cut } : {}) } };
}

/** Joins the characters of one UTF-8 stream that arrives in arbitrary chunks. */
class CharacterJoiner {
  #pending: Buffer = Buffer.alloc(0);

  /**
   * Returns the complete characters so far, in up to two pieces; an incomplete one waits for the next call. The pieces
   * share memory with `bytes`.
   */
  push(bytes: Uint8Array): readonly Buffer[] {
    let rest = asBuffer(bytes);
    const pieces: Buffer[] = [];
    if (this.#pending.length > 0 && rest.length > 0) {
      const missing = continuationBytes(rest);
      const joined = Buffer.concat([this.#pending, rest.subarray(0, missing)]);
      rest = rest.subarray(missing);
      if (rest.length === 0 && unfinishedBytes(joined) > 0) {
        this.#pending = joined;
        return [];
      }
      pieces.push(joined);
      this.#pending = Buffer.alloc(0);
    }
    const whole = rest.length - unfinishedBytes(rest);
    if (whole < rest.length) this.#pending = Buffer.from(rest.subarray(whole));
    if (whole > 0) pieces.push(rest.subarray(0, whole));
    return pieces;
  }

  /** Returns the rest, which was never completed. */
  end(): readonly Buffer[] {
    const rest = this.#pending;
    this.#pending = Buffer.alloc(0);
    return rest.length > 0 ? [rest] : [];
  }
}

/**
 * How many bytes at the end of `bytes` begin an incomplete UTF-8 character: 0 to 3. Invalid bytes count as complete;
 * decoding replaces them.
 */
function unfinishedBytes(bytes: Uint8Array): number {
  if ((bytes.at(-1) ?? 0) < 0b1000_0000) return 0;
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (!isContinuation(byte)) return back < sequenceLength(byte) ? back : 0;
  }
  return 0;
}

/** How many bytes at the start of `bytes` continue an earlier character: 0 to 3. */
function continuationBytes(bytes: Uint8Array): number {
  let count = 0;
  while (count < 3 && isContinuation(bytes[count] ?? 0)) count += 1;
  return count;
}

function isContinuation(byte: number): boolean {
  return byte >= 0b1000_0000 && byte < 0b1100_0000;
}

function sequenceLength(leadByte: number): number {
  if (leadByte < 0b1100_0010 || leadByte > 0b1111_0100) return 1;
  if (leadByte >= 0b1111_0000) return 4;
  return leadByte >= 0b1110_0000 ? 3 : 2;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
