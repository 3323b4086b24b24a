/** The size of a header, and the unit of everything in a tar archive. */
export const blockSize = 512;
/** What ends an archive. */
export const tarEnd: Buffer = Buffer.alloc(2 * blockSize);

/** Who owns an entry. */
interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** A file in a tar archive, or a directory if it has no content. */
export function tarEntry(name: string, content: Buffer | undefined, { uid, gid }: Owner = { uid: 0, gid: 0 }): Buffer {
  const header = Buffer.alloc(blockSize);
  const size = content?.length ?? 0;
  const numbers = [content ? 0o644 : 0o755, uid, gid].map((each) => `${octal(each, 7)}\0`);
  header.write(name, 0);
  header.write(numbers.join(""), 100);
  header.write(`${octal(size, 11)}\0`, 124);
  header.write(`${octal(0, 11)}\0${" ".repeat(8)}${content ? "0" : "5"}`, 136);
  header.write("ustar\x0000", 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)}\0 `, 148);
  return Buffer.concat([
    header,
    content ?? Buffer.alloc(0),
    Buffer.alloc((blockSize - (size % blockSize)) % blockSize),
  ]);
}

/** @throws RangeError if the number is too large. */
function octal(value: number, digits: number): string {
  const text = value.toString(8).padStart(digits, "0");
  if (text.length > digits) throw new RangeError(`${value} does not fit into a tar archive`);
  return text;
}
