import { Transform, type TransformCallback } from "node:stream";

/** A text to find, and what to put in its place. */
export interface Replacement {
  /** The text part by part, each in one of several spellings; none of these begins with another one. */
  readonly parts: readonly (readonly Buffer[])[];
  readonly by: Buffer;
}

/** Finds texts in bytes that may arrive in pieces. Where several begin, the one that is first in the list counts. */
export class TextReplacer {
  readonly #replacements: readonly Replacement[];
  /** 1 for each byte with which one of the texts begins. */
  readonly #begins = new Uint8Array(256);

  constructor(replacements: readonly Replacement[]) {
    this.#replacements = replacements;
    for (const { parts } of replacements) {
      for (const [byte = 0] of parts[0] ?? []) this.#begins[byte] = 1;
    }
  }

  /**
   * The bytes with the texts replaced, and the rest, which may be the beginning of a text: it belongs before the bytes that follow.
   *
   * @param last - true if none follow; nothing is left then.
   */
  replace(bytes: Buffer, last: boolean): { readonly pieces: readonly Buffer[]; readonly rest: Buffer } {
    const pieces: Buffer[] = [];
    let done = 0;
    const keep = (piece: Buffer): void => void (piece.length > 0 && pieces.push(piece));
    for (let at = 0; at < bytes.length; at += 1) {
      if (this.#begins[bytes[at] ?? 0] === 0) continue;
      const found = this.#at(bytes, at, last);
      if (found === "unfinished") {
        keep(bytes.subarray(done, at));
        return { pieces, rest: bytes.subarray(at) };
      }
      if (found === undefined) continue;
      keep(bytes.subarray(done, at));
      keep(found.by);
      done = found.end;
      at = done - 1;
    }
    keep(bytes.subarray(done));
    return { pieces, rest: Buffer.alloc(0) };
  }

  /** @returns the same object if there is nothing to replace. */
  whole(bytes: Buffer): Buffer {
    const replaced = Buffer.concat(this.replace(bytes, true).pieces);
    return replaced.equals(bytes) ? bytes : replaced;
  }

  /** The same for text whose characters are bytes, as in headers. */
  text(text: string): string {
    return this.whole(Buffer.from(text, "latin1")).toString("latin1");
  }

  #at(bytes: Buffer, start: number, last: boolean): { end: number; by: Buffer } | "unfinished" | undefined {
    for (const { parts, by } of this.#replacements) {
      const end = endOf(parts, bytes, start);
      if (end === "unfinished" && !last) return end;
      if (typeof end === "number") return { end, by };
    }
    return undefined;
  }
}

/** Where a text ends that begins at `start`; `undefined` if it does not begin there. */
function endOf(parts: Replacement["parts"], bytes: Buffer, start: number): number | "unfinished" | undefined {
  let at = start;
  for (const spellings of parts) {
    let length = 0;
    for (const spelling of spellings) {
      const same = commonLength(spelling, bytes, at);
      if (same === spelling.length) length = same;
      else if (at + same === bytes.length) return "unfinished";
      if (length > 0) break;
    }
    if (length === 0) return undefined;
    at += length;
  }
  return at;
}

function commonLength(spelling: Buffer, bytes: Buffer, at: number): number {
  let length = 0;
  while (length < spelling.length && spelling[length] === bytes[at + length]) length += 1;
  return length;
}

/** Replaces texts in a stream, and holds back only what may be the beginning of one. */
export class ReplacingStream extends Transform {
  readonly #replacer: TextReplacer;
  #rest: Buffer = Buffer.alloc(0);

  constructor(replacer: TextReplacer) {
    super();
    this.#replacer = replacer;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk;
    const { pieces, rest } = this.#replacer.replace(bytes, false);
    for (const piece of pieces) this.push(piece);
    // A copy: a part of the chunk would keep all of it in memory while nothing more arrives.
    this.#rest = Buffer.from(rest);
    callback();
  }

  override _flush(callback: TransformCallback): void {
    for (const piece of this.#replacer.replace(this.#rest, true).pieces) this.push(piece);
    callback();
  }
}
