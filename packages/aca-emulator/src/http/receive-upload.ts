import type { IncomingMessage } from "node:http";
import path from "node:path";
import { finished } from "node:stream";
import { Busboy, type BusboyFileStream, type BusboyInstance } from "@fastify/busboy";
import type { FileResource, SessionDirectory } from "../files/session-directory.ts";
import { ServiceFailure } from "../service-failure.ts";

/** The largest file that can be uploaded, in bytes. */
const uploadLimit = 128 * 1024 * 1024;
/** How much longer than its file a multipart body can be, in bytes. */
const multipartOverhead = 64 * 1024;

/**
 * Writes the field `file` of a multipart request into `directory` of the session. The content is streamed.
 *
 * @throws ServiceFailure if there is none, if it is too large, or if the body ends early; in these cases nothing is written.
 */
export async function receiveUpload(
  files: SessionDirectory,
  message: IncomingMessage,
  directory: string,
): Promise<FileResource> {
  if (Number(message.headers["content-length"] ?? 0) > uploadLimit + multipartOverhead) throw tooLarge();
  const body = parserOf(message);
  try {
    const { name, content } = await findFile(message, body);
    return await files.write(path.posix.join(directory, fileName(name)), limited(content));
  } finally {
    message.unpipe(body);
    body.destroy();
  }
}

function parserOf({ headers }: IncomingMessage): BusboyInstance {
  try {
    return new Busboy({
      headers: { ...headers, "content-type": headers["content-type"] ?? "" },
      preservePath: true,
      limits: { fieldSize: 65_536, parts: 100 },
    });
  } catch {
    throw malformed("The body is not multipart/form-data.");
  }
}

/** Reads the body up to the file. The file's stream fails if the body ends within it. */
function findFile(
  message: IncomingMessage,
  body: BusboyInstance,
): Promise<{ readonly name: string | undefined; readonly content: BusboyFileStream }> {
  return new Promise((resolve, reject) => {
    let found: BusboyFileStream | undefined;
    const fail = (problem: string): void => {
      const failure = malformed(problem);
      found?.destroy(failure);
      reject(failure);
    };
    body.on("file", (field, content, name) => {
      content.on("error", () => {});
      if (field !== "file" || found) {
        content.resume();
        return;
      }
      found = content;
      resolve({ name, content });
    });
    body.on("finish", () => fail("The body has no file in a field named `file`."));
    body.on("error", () => fail("The body ends early."));
    finished(message, { writable: false }, (error) => {
      if (error) fail("The body ends early.");
    });
    message.pipe(body);
  });
}

/** @throws ServiceFailure if it is not the name of a file. */
function fileName(given: string | undefined): string {
  // Browsers and other clients write quotes and line breaks as percent escapes, as the HTML standard says.
  const name = (given ?? "").replaceAll(/%22|%0D|%0A/gi, (escape) => decodeURIComponent(escape));
  if (name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name)) return name;
  throw new ServiceFailure(400, "InvalidFileName", `${JSON.stringify(name)} is not a file name.`);
}

async function* limited(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let length = 0;
  for await (const piece of content) {
    length += piece.length;
    if (length > uploadLimit) throw tooLarge();
    yield piece;
  }
}

function malformed(message: string): ServiceFailure {
  return new ServiceFailure(400, "InvalidRequestBody", message);
}

function tooLarge(): ServiceFailure {
  return new ServiceFailure(413, "FileTooLarge", `A file may have at most ${uploadLimit} bytes.`);
}
