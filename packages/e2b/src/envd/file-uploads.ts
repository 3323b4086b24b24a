import { once } from "node:events";
import { Busboy, type BusboyFileStream, type BusboyInstance } from "@fastify/busboy";
import { ByteQueue, type JsonObject } from "@fenced/core";
import { within } from "@fenced/core/abort";
import * as z from "zod";
import type { Guest } from "../guest/guest.ts";
import { ConnectError } from "./connect-error.ts";
import type { Transfer } from "./file-transfers.ts";

const pieceBytes = 262_144;
/** What is read of an upload that is refused: bytes, and milliseconds. */
const [mostDrained, drainMs] = [67_108_864, 5000];
/** Files of one upload. */
const mostFiles = 10_000;
const createdSchema = z.object({ handle: z.int(), path: z.string() });
const putSchema = z.object({ path: z.string(), metadata: z.record(z.string(), z.string()) });
const metadataSchema = z.object({ metadata: z.record(z.string(), z.string()) });

/** Writes the files of a request. The rest of a body that is refused is read, within limits. */
export async function upload(transfer: Transfer): Promise<JsonObject[]> {
  const body = new UploadedBody(transfer.request.body);
  try {
    return await store(transfer, body);
  } catch (error) {
    // A client that still sends when the connection ends does not hear why.
    await within(drainMs, body.drain(mostDrained));
    throw error;
  }
}

/** The body of a request. A loop over it that ends early does not end it, so that its rest can still be read. */
class UploadedBody implements AsyncIterable<Uint8Array> {
  readonly #pieces: AsyncIterator<Uint8Array, unknown>;

  constructor(body: AsyncIterable<Uint8Array> | null) {
    this.#pieces = (body ?? ReadableStream.from<Uint8Array>([]))[Symbol.asyncIterator]();
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, unknown> {
    return { next: () => this.#pieces.next() };
  }

  /** Reads up to so many bytes of the rest, for nobody. */
  async drain(most: number): Promise<void> {
    try {
      for (let bytes = 0; bytes < most;) {
        const next = await this.#pieces.next();
        if (next.done === true) return;
        bytes += next.value.length;
      }
    } catch {
      // The client has gone.
    }
  }
}

async function store({ request, url, guest }: Transfer, received: UploadedBody): Promise<JsonObject[]> {
  const path = url.searchParams.get("path");
  const metadata = metadataOf(request.headers);
  const body = bodyOf(request, received);
  const type = (request.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
  if (type === "application/octet-stream") {
    if (path === null) throw new ConnectError("invalid_argument", "The query has no path");
    return [await write(guest, { path, content: body, metadata })];
  }
  if (type === "multipart/form-data") return uploadParts(guest, { request, body, path, metadata });
  const wanted = "multipart/form-data or application/octet-stream";
  throw new ConnectError("invalid_argument", `The content type '${type}' is not supported, only ${wanted}`);
}

function bodyOf(request: Request, body: UploadedBody): AsyncIterable<Uint8Array> {
  const encoding = request.headers.get("content-encoding") ?? "identity";
  if (encoding === "identity") return body;
  if (encoding === "gzip") return ReadableStream.from(body).pipeThrough(new DecompressionStream("gzip"));
  throw new ConnectError("invalid_argument", `The content encoding '${encoding}' is not supported, only gzip`);
}

/** Metadata in headers: `X-Metadata-Name: value`. */
function metadataOf(headers: Headers): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of headers) {
    if (!name.startsWith("x-metadata-") || name === "x-metadata-") continue;
    if (!/^[\x20-\x7e]*$/.test(value)) throw new ConnectError("invalid_argument", "Metadata must be printable ASCII");
    found[name.slice("x-metadata-".length)] = value;
  }
  return found;
}

interface FileToWrite {
  readonly path: string;
  readonly content: AsyncIterable<Uint8Array>;
  readonly metadata: Readonly<Record<string, string>>;
}

async function write(guest: Guest, { path, content, metadata }: FileToWrite): Promise<JsonObject> {
  // A small file is written in one step.
  const start = new ByteQueue();
  let opened: { readonly handle: number; readonly path: string } | undefined;
  try {
    for await (const piece of content) {
      if (!opened) start.add(piece);
      if (start.length <= pieceBytes && !opened) continue;
      opened ??= (await guest.request("create", { path }, createdSchema)).result;
      const bytes = start.length > 0 ? start.take() : piece;
      for (let at = 0; at < bytes.length; at += pieceBytes) {
        const { handle } = opened;
        await guest.request("write", { handle }, z.unknown(), bytes.subarray(at, at + pieceBytes));
      }
    }
    if (!opened) {
      const { result } = await guest.request("put", { path, metadata: { ...metadata } }, putSchema, start.take());
      return described(result);
    }
    const { handle } = opened;
    const { result } = await guest.request("metadata", { handle, metadata: { ...metadata } }, metadataSchema);
    return described({ path: opened.path, metadata: result.metadata });
  } catch (error) {
    if (error instanceof ConnectError) throw error;
    throw new ConnectError("invalid_argument", "The request's body ended early, or cannot be decoded", {
      cause: error,
    });
  } finally {
    if (opened) await guest.request("close", { handle: opened.handle }, z.unknown()).catch(() => {});
  }
}

function described({ path, metadata }: z.infer<typeof putSchema>): JsonObject {
  const kept = Object.keys(metadata).length > 0 ? { metadata } : {};
  return { name: path.slice(path.lastIndexOf("/") + 1), path, type: "file", ...kept };
}

interface Parts {
  readonly request: Request;
  readonly body: AsyncIterable<Uint8Array>;
  readonly path: string | null;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Writes the parts named `file` one after another. */
async function uploadParts(guest: Guest, { request, body, path, metadata }: Parts): Promise<JsonObject[]> {
  const contentType = request.headers.get("content-type") ?? "";
  const written: JsonObject[] = [];
  const paths = new Set<string>();
  const contents = new Set<BusboyFileStream>();
  let writing: Promise<void> = Promise.resolve();
  let parser: BusboyInstance;
  try {
    const limits = { fieldSize: 65_536, fields: 100, files: mostFiles, parts: mostFiles + 100 };
    const isPartAFile = (field?: string): boolean => field === "file";
    parser = new Busboy({ headers: { "content-type": contentType }, preservePath: true, isPartAFile, limits });
  } catch (cause) {
    throw new ConnectError("invalid_argument", "The body is not multipart/form-data", { cause });
  }
  const failed = new Promise<never>((_, reject) => {
    parser.on("error", () => reject(new ConnectError("invalid_argument", "The body is not valid multipart/form-data")));
    // The parser would leave out the others without a word.
    for (const event of ["filesLimit", "partsLimit"] as const) {
      parser.on(event, () => reject(new ConnectError("invalid_argument", `Send at most ${mostFiles} files at once`)));
    }
    parser.on("file", (_field: string, content: BusboyFileStream, name: string | undefined) => {
      contents.add(content);
      content.on("error", () => {});
      content.once("close", () => contents.delete(content));
      const target = path ?? name;
      if (target === undefined) {
        content.resume();
        return;
      }
      writing = writing.then(async () => {
        if (paths.has(target)) throw twice(target);
        paths.add(target);
        written.push(await write(guest, { path: target, content, metadata }));
      });
      writing.catch((error: unknown) => {
        content.resume();
        reject(error instanceof Error ? error : new Error(String(error)));
      });
    });
  });
  failed.catch(() => {});
  const finished = new Promise<void>((resolve) => {
    parser.on("finish", resolve);
  });
  const feeding = async (): Promise<void> => {
    for await (const piece of body) {
      if (!parser.write(piece)) await Promise.race([once(parser, "drain"), failed]);
    }
    parser.end();
    await finished;
    await writing;
  };
  try {
    await Promise.race([feeding(), failed]);
    return written;
  } finally {
    parser.destroy();
    // The parser leaves them open, so what writes them would wait for their ends.
    for (const content of contents) content.destroy(new Error("the upload has ended early"));
  }
}

function twice(path: string): ConnectError {
  return new ConnectError("invalid_argument", `The request has more than one file for '${path}'`);
}
