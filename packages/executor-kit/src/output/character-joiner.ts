/** Joins the characters of one UTF-8 stream that arrives in arbitrary cuts. */
export class CharacterJoiner {
  #pending: Buffer = Buffer.alloc(0);

  /**
   * The whole characters so far, in up to two pieces; one that is cut at the end waits for the next call. The pieces
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

  /** What never got finished. */
  end(): readonly Buffer[] {
    const rest = this.#pending;
    this.#pending = Buffer.alloc(0);
    return rest.length > 0 ? [rest] : [];
  }
}

/**
 * How many bytes at the end of `bytes` begin a UTF-8 character that is not finished there: 0 to 3. Invalid bytes
 * count as finished; whoever decodes replaces them.
 */
export function unfinishedBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (!isContinuation(byte)) return back < sequenceLength(byte) ? back : 0;
  }
  return 0;
}

/** How many bytes at the start of `bytes` continue a character that began before: 0 to 3. */
export function continuationBytes(bytes: Uint8Array): number {
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
