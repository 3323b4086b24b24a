import { stat } from "node:fs/promises";
import { FileNotFoundError, InvalidInputError } from "@fenced/core";

/** @throws FileNotFoundError or InvalidInputError if it is no regular file of this host. */
export async function assertLocalFile(local: string): Promise<void> {
  const stats = await stat(local).catch((cause: unknown) => {
    throw new FileNotFoundError(`There is no local file ${JSON.stringify(local)} to upload`, {
      remedy: "Check the path; nothing was uploaded.",
      cause,
    });
  });
  if (stats.isFile()) return;
  throw new InvalidInputError(`${JSON.stringify(local)} is not a regular file`, {
    remedy: "Upload files one by one; nothing was uploaded.",
  });
}
