import { once } from "node:events";
import { Busboy, type BusboyFileStream, type BusboyInstance } from "@fastify/busboy";
import { type JsonObject, wellFormed } from "@fenced/core";
import { within } from "@fenced/core/abort";
import * as z from "zod";
import type { Sandbox } from "../control/sandbox.ts";
import { type Guest, invalid, NoSpaceError } from "../guest/guest.ts";
import { ConnectError } from "./connect-error.ts";
import { toConnectError } from "./connect-protocol.ts";
import { isSigned } from "./signature.ts";

const pieceBytes = 262_144;
/** What is read of an upload that is refused: bytes, and milliseconds. */
const [mostDrained, drainMs] = [67_108_864, 5000];
/** Files of one upload. */
const mostFiles = 10_000;
const openedSchema = z.object({ handle: z.int(), size: z.number().nonnegative(), modified: z.number() });
const createdSchema = z.object({ handle: z.int(), path: z.string() });
const metadataSchema = z.object({ metadata: z.record(z.string(), z.string()) });

/** A request for a file, after its client was found to be allowed to send it. */
interface Transfer {
  readonly request: Request;
  readonly url: URL;
  readonly guest: Guest;
}

/** Answers a request for `/files`. */
export async function files(request: Request, sandbox: Sandbox): Promise<Response> {
  try {
    const url = new URL(request.url);
    assertAllowed(request, url, sandbox);
    assertUser(url.searchParams.get("username"));
    const guest = await sandbox.guest();
    if (request.method === "GET" || request.method === "HEAD") return await download({ request, url, guest });
    if (request.method === "POST") return Response.json(await upload({ request, url, guest }));
    throw new ConnectError("unimplemented", "Files can be read with GET and written with POST");
  } catch (error) {
    return refusal(toConnectError(error, request.signal, sandbox.report));
  }
}

/** Accounts of E2B's sandboxes. Here each sandbox has one account, which answers to both names. */
const users: ReadonlySet<string> = new Set(["user", "root"]);

/** @throws ConnectError if the user is not one of those that a sandbox knows. */
export function assertUser(name: string | null | undefined): void {
  if (name === null || name === undefined || name === "" || users.has(name)) return;
  throw new ConnectError("unauthenticated", `There is no user '${name}'; a sandbox has "user" and "root"`);
}

function assertAllowed(request: Request, url: URL, sandbox: Sandbox): void {
  const { token } = sandbox;
  if (token === undefined) return;
  const given = request.headers.get("x-access-token");
  if (given !== null) {
    if (sandbox.accepts(given)) return;
    throw new ConnectError("unauthenticated", "The access token is not valid");
  }
  if (!url.searchParams.has("signature")) {
    throw new ConnectError("unauthenticated", "signature or access token is missing");
  }
  const signed = isSigned(url, request.method === "POST" ? "write" : "read", token);
  if (signed === true) return;
  throw new ConnectError(
    "unauthenticated",
    signed === "expired" ? "signature is already expired" : "invalid signature",
  );
}

function refusal(problem: ConnectError): Response {
  const status = problem instanceof NoSpaceError ? 507 : problem.status;
  return Response.json({ code: status, message: problem.message }, { status });
}

async function download({ request, url, guest }: Transfer): Promise<Response> {
  const path = url.searchParams.get("path") ?? "";
  const { result: opened } = await guest.request("open", { path }, openedSchema);
  const file = openFile(guest, opened.handle);
  const name = path.slice(path.lastIndexOf("/") + 1);
  const headers = new Headers({
    "content-type": "application/octet-stream",
    "content-disposition": `inline; filename*=UTF-8''${encodeURIComponent(wellFormed(name))}`,
    "last-modified": new Date(opened.modified * 1000).toUTCString(),
    vary: "Accept-Encoding",
  });
  if (request.method === "HEAD") {
    await file.close();
    return new Response(null, { headers });
  }
  const range = rangeOf(request.headers.get("range"), opened.size);
  if (range === "unsatisfiable") {
    await file.close();
    return new Response(null, { status: 416, headers: { "content-range": `bytes */${opened.size}` } });
  }
  if (range) await file.seek(range.from);
  if (range) {
    const most = range.to - range.from + 1;
    headers.set("content-range", `bytes ${range.from}-${range.to}/${opened.size}`);
    headers.set("content-length", String(most));
    return new Response(contentOf(file, most), { status: 206, headers });
  }
  if (opened.size > 0 && acceptsGzip(request.headers.get("accept-encoding"))) {
    headers.set("content-encoding", "gzip");
    return new Response(contentOf(file).pipeThrough(new CompressionStream("gzip")), { headers });
  }
  if (opened.size > 0) return new Response(contentOf(file), { headers });
  // The kernel's own files say that they are empty.
  const first = await file.read(pieceBytes);
  if (first.length > 0) return new Response(contentOf(file, Infinity, first), { headers });
  await file.close();
  return new Response(new Uint8Array(), { headers });
}

/** A file that is open in the sandbox. */
interface OpenFile {
  /**
   * Reads on; nothing at the end.
   *
   * @throws ConnectError if it cannot be read; it is closed then.
   */
  readonly read: (size: number) => Promise<Uint8Array>;
  readonly seek: (position: number) => Promise<void>;
  readonly close: () => Promise<void>;
}

function openFile(guest: Guest, handle: number): OpenFile {
  const close = async (): Promise<void> => {
    await guest.request("close", { handle }, z.unknown()).catch(() => {});
  };
  const ask = async (operation: string, parameters: JsonObject): Promise<Uint8Array> => {
    try {
      return (await guest.request(operation, { handle, ...parameters }, z.unknown())).data;
    } catch (error) {
      await close();
      throw error;
    }
  };
  return {
    read: async (size) => {
      const data = await ask("read", { size });
      if (data.length <= size) return data;
      // More than the header promised would be taken for the next response.
      await close();
      throw invalid();
    },
    seek: async (position) => void (await ask("seek", { position })),
    close,
  };
}

/** A file's content, which closes it. Not a generator, which would not notice if nobody ever began to read it. */
function contentOf(file: OpenFile, most: number = Infinity, first?: Uint8Array): ReadableStream<Uint8Array> {
  let left = most;
  let next = first;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const data = next ?? (left > 0 ? await file.read(Math.min(left, pieceBytes)) : new Uint8Array());
        next = undefined;
        left -= data.length;
        if (data.length > 0) controller.enqueue(data);
        else {
          await file.close();
          // Its client would wait for the rest.
          if (left > 0 && most !== Infinity) throw new ConnectError("internal", "The file has become shorter");
          controller.close();
        }
      },
      cancel: () => file.close(),
    },
    { highWaterMark: 0 },
  );
}

/** The first range of a header, if it is one that can be answered; other headers are ignored, as RFC 9110 allows. */
function rangeOf(
  header: string | null,
  size: number,
): { readonly from: number; readonly to: number } | "unsatisfiable" | undefined {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(header ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  const from = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const to = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  return from <= to ? { from, to } : "unsatisfiable";
}

function acceptsGzip(header: string | null): boolean {
  return (header ?? "").split(",").some((part) => {
    const [name = "", ...parameters] = part.split(";").map((word) => word.trim().toLowerCase());
    return name === "gzip" && !parameters.includes("q=0");
  });
}

async function upload(transfer: Transfer): Promise<JsonObject[]> {
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
  const { result: created } = await guest.request("create", { path }, createdSchema);
  const { handle } = created;
  try {
    for await (const piece of content) {
      for (let at = 0; at < piece.length; at += pieceBytes) {
        await guest.request("write", { handle }, z.unknown(), piece.subarray(at, at + pieceBytes));
      }
    }
    const { result } = await guest.request("metadata", { handle, metadata: { ...metadata } }, metadataSchema);
    const kept = Object.keys(result.metadata).length > 0 ? { metadata: result.metadata } : {};
    const name = created.path.slice(created.path.lastIndexOf("/") + 1);
    return { name, path: created.path, type: "file", ...kept };
  } catch (error) {
    if (error instanceof ConnectError) throw error;
    throw new ConnectError("invalid_argument", "The request's body ended early, or cannot be decoded", {
      cause: error,
    });
  } finally {
    await guest.request("close", { handle }, z.unknown()).catch(() => {});
  }
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
    // The parser leaves them open, so whoever writes them would wait for their ends.
    for (const content of contents) content.destroy(new Error("the upload has ended early"));
  }
}

function twice(path: string): ConnectError {
  return new ConnectError("invalid_argument", `The request has more than one file for '${path}'`);
}
