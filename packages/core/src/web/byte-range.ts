/** A part of a file: the offsets of its first and last byte. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Reads a request's `Range` (RFC 9110, section 14).
 *
 * @returns `undefined` for the whole file: without a range, with one that is malformed or has several parts, and with
 * `If-Range`, because nothing here proves that the file is the one that the client has a part of.
 */
export function byteRange(
  headers: Pick<Headers, "get"> | undefined,
  size: number,
): ByteRange | "unsatisfiable" | undefined {
  const range = headers?.get("range");
  if (typeof range !== "string" || typeof headers?.get("if-range") === "string") return undefined;
  const [, first = "", last = ""] = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(range) ?? [];
  if (first === "" && last === "") return undefined;
  if (first === "") return satisfiable({ start: Math.max(0, size - Number(last)), end: size - 1 }, size);
  const end = last === "" ? size - 1 : Number(last);
  if (last !== "" && end < Number(first)) return undefined;
  return satisfiable({ start: Number(first), end: Math.min(end, size - 1) }, size);
}

function satisfiable(range: ByteRange, size: number): ByteRange | "unsatisfiable" {
  return range.start < size ? range : "unsatisfiable";
}
