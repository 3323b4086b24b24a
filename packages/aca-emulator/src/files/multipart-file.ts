import type { IncomingMessage } from "node:http";
import { ServiceFailure } from "../service-failure.ts";

/** The part of a multipart body that is the file: its name, and its bytes as they come. */
export interface MultipartFile {
  readonly name: string;
  readonly content: AsyncIterable<Buffer>;
}

const headerEnd = "\r\n\r\n";

/**
 * Finds the part `file` of a `multipart/form-data` request without holding it in memory. The content must be read.
 *
 * @throws ServiceFailure if there is none.
 */
export async function multipartFile(request: IncomingMessage): Promise<MultipartFile> {
  const boundary = /^multipart\/form-data;.*boundary="?([^";]+)"?/i.exec(request.headers["content-type"] ?? "")?.[1];
  if (boundary === undefined) throw malformed("The body is not multipart/form-data.");
  const source = piecesOf(request);
  const delimiter = Buffer.from(`\r\n--${boundary}`);
  // The first delimiter has no line before it; with this one it looks like all others.
  let rest: Buffer = Buffer.from("\r\n");
  for (;;) {
    let end = rest.indexOf(headerEnd);
    for (; end < 0; end = rest.indexOf(headerEnd)) {
      const { value } = await source.next();
      if (value === undefined || rest.length > 65_536) throw malformed("The body has no part named `file`.");
      rest = Buffer.concat([rest, value]);
    }
    const name = fileName(rest.subarray(0, end).toString("utf8"));
    const content = untilDelimiter(rest.subarray(end + headerEnd.length), source, delimiter);
    if (name !== undefined) return { name, content: withoutRest(content) };
    for (let piece = await content.next(); ; piece = await content.next()) {
      if (piece.done !== true) continue;
      rest = piece.value;
      break;
    }
  }
}

async function* withoutRest(content: AsyncGenerator<Buffer, Buffer>): AsyncGenerator<Buffer, void> {
  yield* content;
}

/** Yields what comes before the delimiter, returns what comes after it. */
async function* untilDelimiter(
  start: Buffer,
  source: AsyncIterator<Buffer, undefined>,
  delimiter: Buffer,
): AsyncGenerator<Buffer, Buffer> {
  let rest = start;
  for (;;) {
    const end = rest.indexOf(delimiter);
    if (end >= 0) {
      if (end > 0) yield rest.subarray(0, end);
      return rest.subarray(end + delimiter.length);
    }
    // A delimiter may have begun in the last bytes.
    const safe = rest.length - delimiter.length + 1;
    if (safe > 0) yield rest.subarray(0, safe);
    const { value } = await source.next();
    if (value === undefined) throw malformed("The body ends within a part.");
    rest = Buffer.concat([rest.subarray(Math.max(0, safe)), value]);
  }
}

/** The name of the file in a part's headers, if it is the part `file`. */
function fileName(headers: string): string | undefined {
  const disposition = /^content-disposition:(.*)$/im.exec(headers)?.[1] ?? "";
  if (!/;\s*name="?file"?(?:;|\s*$)/i.test(disposition)) return undefined;
  const quoted = /;\s*filename="((?:[^"\\]|\\.)*)"/i.exec(disposition)?.[1];
  // As HTML says, a browser or client writes quotes and line ends as percent escapes.
  return quoted?.replaceAll(/%22|%0D|%0A/gi, (escape) => decodeURIComponent(escape)).replaceAll('\\"', '"');
}

function malformed(message: string): ServiceFailure {
  return new ServiceFailure(400, "InvalidRequestBody", message);
}

async function* piecesOf(request: IncomingMessage): AsyncGenerator<Buffer, undefined> {
  for await (const piece of request) if (Buffer.isBuffer(piece)) yield piece;
}
