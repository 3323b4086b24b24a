import { stat } from "node:fs/promises";
import { FileNotFoundError, InvalidInputError } from "@fenced/core";

/** @throws FileNotFoundError or InvalidInputError if one of them cannot be uploaded; nothing was then. */
export async function assertLocalFiles(localPaths: readonly string[]): Promise<void> {
  for (const local of localPaths) {
    const stats = await stat(local).catch((cause: unknown) => {
      throw new FileNotFoundError(`There is no local file ${JSON.stringify(local)} to upload`, {
        remedy: "Check the path; nothing was uploaded.",
        cause,
      });
    });
    if (stats.isFile()) continue;
    throw new InvalidInputError(`${JSON.stringify(local)} is not a regular file`, {
      remedy: "Upload files one by one; nothing was uploaded.",
    });
  }
}
