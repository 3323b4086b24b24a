import path from "node:path";
import { pipeline } from "node:stream/promises";
import { multipartFile } from "../files/multipart-file.ts";
import { uploadLimit, type FileResource } from "../files/session-directory.ts";
import { ServiceFailure } from "../service-failure.ts";
import type { Session } from "../sessions/session.ts";
import type { ApiRequest } from "./api-request.ts";

/** The most that a multipart body can be longer than its file. */
const multipartOverhead = 64 * 1024;

/** Writes an uploaded file into `directory` of the session; streamed. */
export async function receiveUpload(
  session: Session,
  { message }: ApiRequest,
  directory: string,
): Promise<FileResource> {
  if (Number(message.headers["content-length"] ?? 0) > uploadLimit + multipartOverhead) throw tooLarge();
  const { name, content } = await multipartFile(message);
  if (name === "" || name === "." || name === ".." || /[/\0]/.test(name)) {
    throw new ServiceFailure(400, "InvalidFileName", `${JSON.stringify(name)} is not the name of a file.`);
  }
  const file = path.posix.join(directory, name);
  const handle = await session.files.openToWrite(file);
  try {
    await pipeline(limited(content), handle.createWriteStream());
  } catch (error) {
    await handle.close().catch(() => {});
    await session.files.remove(file).catch(() => {});
    throw error;
  }
  return session.files.describe(file);
}

async function* limited(content: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let length = 0;
  for await (const piece of content) {
    length += piece.length;
    if (length > uploadLimit) throw tooLarge();
    yield piece;
  }
}

function tooLarge(): ServiceFailure {
  return new ServiceFailure(413, "FileTooLarge", `A file may have ${uploadLimit} bytes.`);
}
