import { stat } from "node:fs/promises";
import { FileNotFoundError, InvalidInputError } from "@fenced/core";

/**
 * The size of a regular file of this host, in bytes.
 *
 * @throws FileNotFoundError or InvalidInputError if it is not one.
 */
export async function localFileSize(local: string): Promise<number> {
  const stats = await stat(local).catch((cause: unknown) => {
    throw new FileNotFoundError(`The local file ${JSON.stringify(local)} does not exist`, {
      remedy: "Check the path; nothing was uploaded.",
      cause,
    });
  });
  if (stats.isFile()) return stats.size;
  throw new InvalidInputError(`${JSON.stringify(local)} is not a regular file`, {
    remedy: "Pass paths of files, not of directories; nothing was uploaded.",
  });
}
