/** Why an operation on files failed, as the name of an operating system error. */
export type StorageErrorCode =
  | "EBADF"
  | "EEXIST"
  | "EINVAL"
  | "EISDIR"
  | "ELOOP"
  | "EMFILE"
  | "ENAMETOOLONG"
  | "ENOENT"
  | "ENOSPC"
  | "ENOTDIR"
  | "ENOTEMPTY";

/** An operation on files failed, as it would on a disk. */
export class StorageError extends Error {
  readonly code: StorageErrorCode;

  constructor(code: StorageErrorCode) {
    super(code);
    this.code = code;
  }
}

/** The memory of this process that all files together may use. */
export class Storage {
  readonly #maxBytes: number;
  #used = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @throws StorageError if there is not enough left. */
  take(bytes: number): void {
    if (this.#used + bytes > this.#maxBytes) throw new StorageError("ENOSPC");
    this.#used += bytes;
  }

  give(bytes: number): void {
    this.#used -= bytes;
  }
}

const blockBytes = 65_536;

/** The content of a file, in blocks that exist only once something was written to them. The rest reads as zeros. */
export class FileContent {
  readonly #storage: Storage;
  readonly #blocks = new Map<number, Buffer>();
  #size = 0;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns a copy of a part, which is shorter at the end of the file. */
  read(at: number, length: number): Buffer {
    const end = Math.min(this.#size, at + length);
    const bytes = Buffer.alloc(Math.max(0, end - at));
    for (let position = at; position < end;) {
      const offset = position % blockBytes;
      const count = Math.min(blockBytes - offset, end - position);
      this.#blocks.get((position - offset) / blockBytes)?.copy(bytes, position - at, offset, offset + count);
      position += count;
    }
    return bytes;
  }

  /** @throws StorageError if there is no room; what fits is written. */
  write(at: number, bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length;) {
      const offset = (at + done) % blockBytes;
      const count = Math.min(blockBytes - offset, bytes.length - done);
      this.#block((at + done - offset) / blockBytes, offset + count).set(bytes.subarray(done, done + count), offset);
      done += count;
      this.#size = Math.max(this.#size, at + done);
    }
  }

  /** Truncates the file, or extends it with zeros. */
  resize(size: number): void {
    if (size < this.#size) {
      for (const [number, block] of this.#blocks) {
        const start = number * blockBytes;
        if (start >= size) {
          this.#storage.give(block.length);
          this.#blocks.delete(number);
        } else if (start + block.length > size) block.fill(0, size - start);
      }
    }
    this.#size = size;
  }

  /** A block with room for `needed` bytes. Small files use little memory. */
  #block(number: number, needed: number): Buffer {
    const present = this.#blocks.get(number);
    if (present && present.length >= needed) return present;
    const size = Math.min(blockBytes, Math.max(512, 2 ** Math.ceil(Math.log2(needed))));
    this.#storage.take(size - (present?.length ?? 0));
    const block = Buffer.alloc(size);
    present?.copy(block);
    this.#blocks.set(number, block);
    return block;
  }
}
