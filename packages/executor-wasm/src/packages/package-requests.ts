import { createHash } from "node:crypto";
import fs from "node:fs";
import * as z from "zod";
import type { Answer } from "../files/file-requests.ts";
import { IndexError, type PackageIndex } from "./package-index.ts";
import type { WheelFolder } from "./wheel-folder.ts";

/** Maximum number of open files, including pages. */
const mostFiles = 1000;
const pieceBytes = 1_048_576;
/** Maximum size of an image: its files and the list of them. */
const mostImageBytes = 1_342_177_280;

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const name = z
  .string()
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/)
  .max(100);

/** Everything that the program that chooses wheels may request. */
const request = z.discriminatedUnion("op", [
  z.object({ op: z.literal("page"), name }),
  z.object({ op: z.literal("download"), url: z.string().max(4096), sha256 }),
  z.object({ op: z.literal("wheel"), name: z.string().max(300) }),
  z.object({
    op: z.literal("bytes"),
    file: z.int().min(0),
    at: z.int().min(0),
    length: z.int().min(0).max(pieceBytes),
  }),
  z.object({ op: z.literal("packed"), wheels: z.array(z.string().max(100)).max(1000) }),
  z.object({ op: z.literal("put"), index: z.literal(true).exactOptional() }),
]);

/** Where wheels come from, and where their contents go. */
export interface PackagePlaces {
  readonly folder: WheelFolder | undefined;
  readonly index: PackageIndex | undefined;
  /** Whether these wheels are already packed. */
  readonly packed: (wheels: readonly string[]) => boolean;
  /** Descriptor of the image. */
  readonly image: number;
}

/**
 * Answers the requests of the program that chooses and unpacks wheels. It reads untrusted files in its own interpreter and
 * may request anything: it gets wheels of the folder and files of the index, and can only add to its image.
 */
export class PackageRequests {
  readonly #places: PackagePlaces;
  readonly #files: number[] = [];
  readonly #digest = createHash("sha256");
  #size = 0;
  #listBytes = 0;

  constructor(places: PackagePlaces) {
    this.#places = places;
  }

  /** Answers a request; `undefined` if it is not one of these. */
  async answer(fields: unknown, bytes: Uint8Array): Promise<Answer | undefined> {
    const asked = request.safeParse(fields);
    if (!asked.success) return undefined;
    try {
      return await this.#answer(asked.data, bytes);
    } catch (error) {
      if (error instanceof IndexError) return { fields: { error: error.message } };
      throw error;
    }
  }

  /** Completes the image: after the content and the list of files come the length and the hash of that list. */
  finish(): void {
    const trailer = Buffer.alloc(4);
    trailer.writeUInt32BE(this.#listBytes);
    fs.writeFileSync(this.#places.image, Buffer.concat([trailer, this.#digest.digest()]));
  }

  close(): void {
    for (const descriptor of this.#files.splice(0)) fs.closeSync(descriptor);
  }

  async #answer(asked: z.infer<typeof request>, bytes: Uint8Array): Promise<Answer> {
    const { folder, index } = this.#places;
    switch (asked.op) {
      case "page": {
        const page = await index?.page(asked.name);
        return page ? this.#opened(page) : { fields: {} };
      }
      case "download":
        if (!index) return refused("There is no index.");
        return this.#opened(await index.file(asked.url, asked.sha256));
      case "wheel": {
        const wheel = folder?.wheel(asked.name) ?? "There is no folder of wheels.";
        return typeof wheel === "string" ? refused(wheel) : this.#opened(wheel);
      }
      case "bytes": {
        const descriptor = this.#files[asked.file];
        const piece = Buffer.alloc(descriptor === undefined ? 0 : asked.length);
        const count = descriptor === undefined ? 0 : fs.readSync(descriptor, piece, 0, piece.length, asked.at);
        return { fields: {}, bytes: piece.subarray(0, count) };
      }
      case "packed":
        return { fields: { done: this.#places.packed(asked.wheels) } };
      default:
        return this.#put(bytes, asked.index === true);
    }
  }

  #opened({ descriptor, ...said }: { readonly descriptor: number; readonly size: number }): Answer {
    this.#files.push(descriptor);
    if (this.#files.length > mostFiles) return refused(`The installation needs more than ${mostFiles} files.`);
    return { fields: { ...said, file: this.#files.length - 1 } };
  }

  #put(bytes: Uint8Array, isList: boolean): Answer {
    this.#size += bytes.length;
    if (this.#size > mostImageBytes) return refused("The packages are too large.");
    if (isList) {
      this.#digest.update(bytes);
      this.#listBytes += bytes.length;
    }
    fs.writeFileSync(this.#places.image, bytes);
    return { fields: {} };
  }
}

function refused(error: string): Answer {
  return { fields: { error } };
}
