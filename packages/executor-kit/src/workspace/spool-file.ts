import { mkdtemp, open, rm, type FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

/** The content of a file to send. Each iteration reads it anew, so that it can be sent again. */
export interface FileContent extends AsyncIterable<Uint8Array> {
  /** Size in bytes. If the file was changed meanwhile, reading fails or yields fewer bytes. */
  readonly size: number;
}

/** Wraps content of a known size that `read` returns. */
export function contentOf(size: number, read: () => AsyncIterable<Uint8Array> | Iterable<Uint8Array>): FileContent {
  return {
    size,
    async *[Symbol.asyncIterator]() {
      yield* read();
    },
  };
}

/** An unnamed file on this host, for content whose size is known only at its end. It disappears with this program. */
export class SpoolFile {
  /** Bytes written so far. */
  size = 0;
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  static async make(): Promise<SpoolFile> {
    const directory = await mkdtemp(path.join(tmpdir(), "fenced-upload-"));
    try {
      return new SpoolFile(await open(path.join(directory, "content"), "wx+", 0o600));
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#handle.writeFile(bytes);
    this.size += bytes.length;
  }

  content(): FileContent {
    const { size } = this;
    // Some backends start a program for each piece.
    const all = { autoClose: false, start: 0, end: size - 1, highWaterMark: 1_048_576 };
    return contentOf(size, () => (size === 0 ? [] : this.#handle.createReadStream(all)));
  }

  /**
   * A part of what was written.
   *
   * @param pieceBytes - the size of each piece but the last one.
   */
  async *part(start: number, size: number, pieceBytes: number): AsyncGenerator<Uint8Array, void, void> {
    for (let at = 0; at < size;) {
      const piece = Buffer.allocUnsafe(Math.min(pieceBytes, size - at));
      for (let filled = 0; filled < piece.length;) {
        const { bytesRead } = await this.#handle.read(piece, filled, piece.length - filled, start + at + filled);
        if (bytesRead === 0) throw new Error("a temporary file was cut");
        filled += bytesRead;
      }
      at += piece.length;
      yield piece;
    }
  }

  /** Never rejects; may be called more than once. */
  async remove(): Promise<void> {
    await this.#handle.close().catch(() => {});
  }
}
