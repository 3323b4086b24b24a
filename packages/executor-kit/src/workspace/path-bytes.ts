import { InvalidInputError } from "@fenced/core";

/** Well-formed UTF-8 in a Latin-1 string, in which each character is one byte; or a single byte that is not part of any. */
const sequences =
  /(?:[\0-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})+|[^]/g;
/** Added to a byte that is not UTF-8, as Python's `surrogateescape` does. */
const escaped = 0xdc_00;
const loneSurrogate = /\p{Surrogate}/u;

/**
 * The string for a path that a system gave as bytes. Most systems allow names that are not UTF-8; each byte that is not
 * becomes a lone surrogate, U+DC80 to U+DCFF, so that no two names become the same. `pathBytes` converts it back.
 */
export function pathOfBytes(bytes: Buffer): string {
  return pathOfLatin1(bytes.toString("latin1"));
}

/** The same for a path that was read with the encoding `latin1`, one character for each byte. */
export function pathOfLatin1(latin1: string): string {
  if (/^[\0-\x7f]*$/.test(latin1)) return latin1;
  return latin1.replaceAll(sequences, (sequence) =>
    sequence.length === 1 && sequence > "\x7f"
      ? String.fromCharCode(escaped + sequence.charCodeAt(0))
      : Buffer.from(sequence, "latin1").toString(),
  );
}

/** The bytes of a path, as systems other than Windows store them. */
export function pathBytes(path: string): Buffer {
  if (!loneSurrogate.test(path)) return Buffer.from(path);
  const parts = path.split(/([\udc80-\udcff])/u);
  return Buffer.concat(
    parts.map((part, index) => (index % 2 === 1 ? Buffer.of(part.charCodeAt(0) - escaped) : Buffer.from(part))),
  );
}

/** False for a path with lone surrogates that stand for no byte: several such paths would become the same file. */
export function hasBytes(path: string): boolean {
  return !loneSurrogate.test(path.replaceAll(/[\udc80-\udcff]/gu, ""));
}

/** A path for this system's functions: the string itself, or its bytes if they are not UTF-8. */
export function systemPath(path: string): string | Buffer {
  return loneSurrogate.test(path) ? pathBytes(path) : path;
}

/** The name of a local copy, which any system accepts: `%FF` for a byte that is not UTF-8. */
export function copyName(path: string): string {
  return path.replaceAll(
    /[\udc80-\udcff]/gu,
    (byte) => `%${(byte.charCodeAt(0) - escaped).toString(16).toUpperCase()}`,
  );
}

/** The error for a name that no file system accepts. */
export function unusableName(given: string): InvalidInputError {
  return new InvalidInputError(`The file system rejects the name: ${JSON.stringify(given.slice(0, 100))}`, {
    remedy: "Use a shorter name of ordinary characters.",
  });
}
