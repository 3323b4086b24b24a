import { InvalidInputError } from "@fenced/core";
import { normalizeWorkspacePath } from "@fenced/executor-kit";
import { ContentsFiles } from "../files/contents-files.ts";
import type { ServerClient } from "../servers/server-client.ts";

/** The workspace of a kernel other than Python, on a server whose files are not this host's. */
export interface ContentsWorkspace {
  readonly files: ContentsFiles;
  /** Deleted with the session. */
  readonly isOwn: boolean;
}

/**
 * Makes the directory in which a kernel other than Python is to be started. A kernel gateway, which cannot make one, is
 * left to start it where it likes.
 *
 * @param given - relative to the server's root directory.
 * @param own - the directory's name, if none is given.
 */
export async function openContentsWorkspace(
  client: () => ServerClient,
  { given, own }: { readonly given: string | undefined; readonly own: string },
): Promise<ContentsWorkspace> {
  if (given?.startsWith("/") === true) {
    throw new InvalidInputError(`The workDir ${JSON.stringify(given)} is absolute`, {
      remedy: "Other than Python's, a kernel's must be given relative to the server's root directory.",
    });
  }
  const isThere = await ContentsFiles.areOn(client());
  if (given === undefined && !isThere) return { files: new ContentsFiles(client, ""), isOwn: false };
  const directory = normalizeWorkspacePath(given ?? own);
  const files = new ContentsFiles(client, directory === "." ? "" : directory);
  await files.make();
  return { files, isOwn: given === undefined };
}
