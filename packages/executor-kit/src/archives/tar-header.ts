import { pathBytes, pathOfLatin1 } from "../workspace/path-bytes.ts";

/** Tar archives consist of blocks of this many bytes. */
export const tarBlock = 512;
/** The largest number that a field of eleven octal digits can hold, and of seven. */
const [mostInTwelve, mostInEight] = [0o77_777_777_777, 0o7_777_777];

/** An entry of an archive. */
export interface TarEntry {
  readonly path: string;
  /** `hard`: another name of an earlier file. */
  readonly type: "file" | "directory" | "link" | "hard";
  readonly mode: number;
  /** Milliseconds since 1970. */
  readonly modifiedAt: number;
  readonly size: number;
  /** Where a link leads; the earlier file's path for `hard`. */
  readonly target: string;
}

const typeFlags = { file: "0", hard: "1", link: "2", directory: "5" } as const;

/** The blocks that precede an entry's content. What does not fit into the old header is in a pax header before it. */
export function encodeTarEntry(entry: TarEntry): Buffer {
  const path = pathBytes(entry.type === "directory" ? `${entry.path}/` : entry.path);
  const target = pathBytes(entry.target);
  const records: Buffer[] = [];
  if (path.length > 100) records.push(paxRecord("path", path));
  if (target.length > 100) records.push(paxRecord("linkpath", target));
  if (entry.size > mostInTwelve) records.push(paxRecord("size", Buffer.from(String(entry.size))));
  const seconds = Math.min(mostInTwelve, Math.max(0, Math.floor(entry.modifiedAt / 1000)));
  const own = header({ ...entry, path, target, seconds, flag: typeFlags[entry.type] });
  if (records.length === 0) return own;
  const pax = Buffer.concat(records);
  const before = {
    path: Buffer.from("pax"),
    target: Buffer.alloc(0),
    mode: 0o644,
    size: pax.length,
    seconds,
    flag: "x",
  };
  return Buffer.concat([header(before), pax, padding(pax.length), own]);
}

/** The zeros that complete the last block of content of this size. */
export function padding(size: number): Buffer {
  return Buffer.alloc((tarBlock - (size % tarBlock)) % tarBlock);
}

interface HeaderFields {
  readonly path: Buffer;
  readonly target: Buffer;
  readonly mode: number;
  readonly size: number;
  readonly seconds: number;
  readonly flag: string;
}

function header({ path, target, mode, size, seconds, flag }: HeaderFields): Buffer {
  const block = Buffer.alloc(tarBlock);
  path.copy(block, 0, 0, 100);
  block.write(octal(mode & mostInEight, 7), 100, "latin1");
  block.write(octal(0, 7), 108, "latin1");
  block.write(octal(0, 7), 116, "latin1");
  block.write(octal(Math.min(size, mostInTwelve), 11), 124, "latin1");
  block.write(octal(seconds, 11), 136, "latin1");
  block.write(flag, 156, "latin1");
  target.copy(block, 157, 0, 100);
  block.write("ustar\u000000", 257, "latin1");
  block.write(`${octal(checksum(block), 6)}\0 `, 148, "latin1");
  return block;
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, "0");
}

/** A record begins with its own length. */
function paxRecord(name: string, value: Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${name}=`), value, Buffer.from("\n")]);
  let length = rest.length + 1;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  return Buffer.concat([Buffer.from(String(length)), rest]);
}

/** What a header says, before anything of it has been judged. */
export interface RawTarHeader {
  readonly path: string;
  readonly target: string;
  readonly mode: number;
  readonly modifiedAt: number;
  readonly size: number;
  /** One character. */
  readonly flag: string;
}

/** Reads a block; `undefined` if it is not a header. */
export function decodeTarHeader(block: Buffer): RawTarHeader | undefined {
  const [size, mode] = [numberAt(block, 124, 12), numberAt(block, 100, 8)];
  if (numberAt(block, 148, 8) !== checksum(block)) return undefined;
  if (size === undefined || mode === undefined) return undefined;
  const isPosix = block.toString("latin1", 257, 263) === "ustar\0";
  const prefix = isPosix ? textAt(block, 345, 155) : "";
  const name = textAt(block, 0, 100);
  return {
    path: pathOfLatin1(prefix === "" ? name : `${prefix}/${name}`),
    target: pathOfLatin1(textAt(block, 157, 100)),
    mode: mode & 0o777,
    // A time before 1970 is negative.
    modifiedAt: (numberAt(block, 136, 12) ?? 0) * 1000,
    size,
    flag: block.toString("latin1", 156, 157),
  };
}

function checksum(block: Buffer): number {
  let sum = 0;
  for (let at = 0; at < tarBlock; at += 1) sum += at >= 148 && at < 156 ? 32 : (block[at] ?? 0);
  return sum;
}

/** A text that ends at the first zero, if there is one; each character is a byte. */
export function textAt(block: Buffer, at: number, length: number): string {
  return block.toString("latin1", at, at + length).replace(/\0.*/s, "");
}

/** An octal number, or a binary one that is marked by the first bit; `undefined` if it is neither, negative, or too large. */
function numberAt(block: Buffer, at: number, length: number): number | undefined {
  const first = block[at] ?? 0;
  if (first === 0x80) {
    const value = Number(`0x${block.toString("hex", at + 1, at + length)}`);
    return Number.isSafeInteger(value) ? value : undefined;
  }
  const text = block.toString("latin1", at, at + length).replaceAll(/^[ \0]+|[ \0]+$/g, "");
  return /^[0-7]*$/.test(text) ? Number.parseInt(text || "0", 8) : undefined;
}

/** The records of a pax header; `undefined` if it is not valid. */
export function decodePax(content: Buffer): ReadonlyMap<string, string> | undefined {
  const records = new Map<string, string>();
  for (let at = 0; at < content.length;) {
    const space = content.indexOf(0x20, at);
    const length = space < 0 || space - at > 10 ? Number.NaN : Number(content.toString("latin1", at, space));
    if (!Number.isSafeInteger(length) || length <= space - at + 2 || at + length > content.length) return undefined;
    const record = content.toString("latin1", space + 1, at + length - 1);
    const equals = record.indexOf("=");
    if (equals < 1) return undefined;
    records.set(record.slice(0, equals), record.slice(equals + 1));
    at += length;
  }
  return records;
}
