import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { cacheDirectory, makeKept, openKept } from "../interpreter/kept-file.ts";
import { snapshotInputs } from "../interpreter/start-process.ts";

/** What an image ends with: the length and the hash of its list of files. */
const trailerBytes = 36;
const mostBytes = 1_610_612_736;
/** What the names of images begin with, and how many of them the cache keeps. */
const [prefix, mostImages] = ["packages-for-", 8];

/** Images of packages, in the cache directory. */
export class ImageCache {
  readonly directory: string;

  constructor(directory: string = cacheDirectory()) {
    this.directory = directory;
  }

  /** The name of an image that depends on these values, and on the interpreter. */
  nameOf(values: unknown): string {
    const hash = createHash("sha256").update(JSON.stringify([values, snapshotInputs()]));
    return `${prefix}${hash.digest("hex").slice(0, 32)}`;
  }

  /** Opens an image for reading; `undefined` if there is none, or a damaged one. */
  open(name: string): number | undefined {
    const descriptor = openKept({ directory: this.directory, name, mostBytes });
    if (descriptor === undefined) return undefined;
    if (isWhole(descriptor)) {
      // Marks it as used: the cache removes the images that were not used for the longest time.
      fs.utimesSync(path.join(this.directory, name), new Date(), new Date());
      return descriptor;
    }
    fs.closeSync(descriptor);
    return undefined;
  }

  /**
   * Creates an image, and opens it for reading.
   *
   * @param write - returns its name; `undefined`: it is not needed.
   */
  async make(write: (image: number) => Promise<string | undefined>): Promise<number | undefined> {
    return makeKept(this.directory, write, { prefix, most: mostImages });
  }
}

/** Whether the end of an image, where it lists its files, is intact. */
function isWhole(descriptor: number): boolean {
  const end = fs.fstatSync(descriptor).size - trailerBytes;
  if (end < 0) return false;
  const trailer = Buffer.alloc(trailerBytes);
  fs.readSync(descriptor, trailer, 0, trailerBytes, end);
  if (trailer.readUInt32BE() > end) return false;
  const list = Buffer.alloc(trailer.readUInt32BE());
  fs.readSync(descriptor, list, 0, list.length, end - list.length);
  return createHash("sha256").update(list).digest().equals(trailer.subarray(4));
}
