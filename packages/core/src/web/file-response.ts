import * as z from "zod";
import { BackendUnavailableError } from "../errors/backend-unavailable-error.ts";
import { InvalidInputError } from "../errors/invalid-input-error.ts";
import type { WorkspaceFiles } from "../execution/workspace-files.ts";
import {
  callbackOption,
  checkOptions,
  objectOption,
  optionsSchema,
  type OptionSchemas,
  stringsOption,
} from "../options/check-options.ts";
import { byteRange } from "./byte-range.ts";
import { contentDisposition, contentTypeOf } from "./file-headers.ts";

/** The part of a request that `fileResponse` reads; a `Request` is one. */
export interface FileRequest {
  readonly method: string;
  readonly headers: Pick<Headers, "get">;
  /** Aborted when the client disconnects. */
  readonly signal?: AbortSignal;
}

/** Options of `fileResponse`; all are optional. */
export interface FileResponseOptions {
  /**
   * The request that is answered. With it, the response has only the part that `Range` asks for, and no body for
   * `HEAD`, and the file is closed when the request is aborted. Default: the whole file.
   */
  readonly request?: FileRequest | undefined;
  /**
   * `inline` lets browsers show images, audio, video and text on a page of their own. Everything else, such as HTML, SVG
   * and PDF, is downloaded, because it could act in the user's name, unless you set its `contentType`. Default:
   * `attachment`, a download. Both work in `<img>`, `<audio>` and `<video>`.
   */
  readonly disposition?: "attachment" | "inline" | undefined;
  /** The type to send. Default: by the file's extension; unknown ones are `application/octet-stream`. */
  readonly contentType?: string | undefined;
  /** Headers to send besides those of the file. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Receives the error of a file that could not be read to its end. Default: ignored. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const fileResponseOptions: z.ZodType<FileResponseOptions> = optionsSchema({
  request: z
    .custom<FileRequest>(isRequest, "must be a Request, or an object with its method, headers and signal")
    .exactOptional(),
  disposition: z.enum(["attachment", "inline"]).exactOptional(),
  contentType: z.string().exactOptional(),
  headers: stringsOption.exactOptional(),
  onError: callbackOption<(error: unknown) => void>().exactOptional(),
} satisfies OptionSchemas<FileResponseOptions>);

/**
 * Sends a file of the workspace to a client. Code may change the file meanwhile, so the response never has more bytes
 * than its `content-length` says: what would follow would be read as the next response of the connection, perhaps by
 * another user. If the file turns out to be shorter, the body fails, and with it the connection. A file that code replaces
 * at that moment arrives cut; one that only grows arrives as it was.
 *
 * Browsers do not guess another type (`nosniff`), save the file under its name, and run no script in it.
 *
 * Returns a standard response: Hono, Next.js, Deno and Bun accept it as it is; with Fastify 5, use `reply.send`.
 *
 * @throws FileNotFoundError if there is no such file; `InvalidInputError` if `path` is a directory, or an option is
 * unknown or wrong; and the other errors of `files.stat` and `files.readStream`.
 *
 * @example
 * app.get("/files/:path{.+}", (context) =>
 *   fileResponse(executor.files, context.req.param("path"), { request: context.req.raw }),
 * );
 */
export async function fileResponse(
  files: Pick<WorkspaceFiles, "stat" | "readStream">,
  path: string,
  options: FileResponseOptions = {},
): Promise<Response> {
  const { request, ...checked } = checkOptions(fileResponseOptions, options, "fileResponse");
  const { type, size } = await files.stat(path);
  if (type !== "file") throw new InvalidInputError(`${path} is a directory`, { remedy: "Ask for a file." });
  const range = byteRange(request?.headers, size);
  const headers = { ...headersOf(path, checked), "accept-ranges": "bytes", ...checked.headers };
  if (range === "unsatisfiable") {
    return new Response(null, { status: 416, headers: { ...headers, "content-range": `bytes */${size}` } });
  }
  const { start, end } = range ?? { start: 0, end: size - 1 };
  const length = end - start + 1;
  const isEmpty = request?.method === "HEAD" || length === 0;
  const body = isEmpty ? null : await bodyOf(files, path, { start, end, length, request, onError: checked.onError });
  return new Response(body, {
    status: range === undefined ? 200 : 206,
    headers: {
      ...headers,
      "content-length": String(length),
      ...(range && { "content-range": `bytes ${start}-${end}/${size}` }),
    },
  });
}

function headersOf(path: string, { contentType, disposition = "attachment" }: FileResponseOptions) {
  const { type, isInert } = contentTypeOf(path);
  return {
    "content-type": contentType ?? type,
    "content-disposition": contentDisposition(path, isInert || contentType !== undefined ? disposition : "attachment"),
    "x-content-type-options": "nosniff",
    // For a browser that shows it all the same: no scripts, and an origin of its own.
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    // Files change at any time, and belong to one user.
    "cache-control": "private, no-store",
  };
}

type Read = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]>>;

/** Opens the file, so that its errors still have a status, and streams exactly `length` bytes, or fails. */
async function bodyOf(
  files: Pick<WorkspaceFiles, "readStream">,
  path: string,
  {
    start,
    end,
    length,
    request,
    onError,
  }: {
    readonly start: number;
    readonly end: number;
    readonly length: number;
    readonly request: FileRequest | undefined;
    readonly onError: ((error: unknown) => void) | undefined;
  },
): Promise<ReadableStream<Uint8Array>> {
  const signal = request?.signal;
  const reader = files.readStream(path, { start, end, ...(signal && { signal }) }).getReader();
  let first: Read | undefined = await reader.read();
  let left = length;
  const next = async (): Promise<Uint8Array> => {
    const { value, done } = first ?? (await reader.read());
    first = undefined;
    if (done) throw tooShort(path, left);
    return value.byteLength === 0 ? next() : value.subarray(0, left);
  };
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    try {
      const chunk = await next();
      left -= chunk.byteLength;
      controller.enqueue(chunk);
      if (left > 0) return;
      await reader.cancel();
      controller.close();
    } catch (error) {
      if (signal?.aborted !== true) onError?.(error);
      throw error;
    }
  };
  return new ReadableStream({ pull, cancel: (reason) => reader.cancel(reason) }, { highWaterMark: 0 });
}

function tooShort(path: string, missing: number): BackendUnavailableError {
  return new BackendUnavailableError(`${path} became ${missing} bytes shorter while it was sent`, {
    remedy: "Request it again once the code that writes it has finished.",
  });
}

const hasHeaders = objectOption<Pick<Headers, "get">>(["get"], "headers");

function isRequest(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return (
    typeof Reflect.get(value, "method") === "string" && hasHeaders.safeParse(Reflect.get(value, "headers")).success
  );
}
