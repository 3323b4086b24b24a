import path from "node:path";
import { finished } from "node:stream/promises";
import type { UserAndGroup } from "./container-config.ts";
import { answered, type Container, execProgram } from "./daemon-calls.ts";
import { tarEnd, tarEntry } from "./tar-entry.ts";

/**
 * Gives a directory at the top of a running container, such as a new volume, which belongs to root, to a user. If the
 * root file system is read-only, all users may write to the directory instead.
 */
export async function giveDirectory(container: Container, directory: string, owner: UserAndGroup): Promise<void> {
  try {
    const archive = Buffer.concat([tarEntry(path.posix.relative("/", directory), undefined, owner), tarEnd]);
    await answered(container.putArchive(archive, { path: "/" }), "container archive");
  } catch {
    // The API changes no owners, and root in the container lacks the capability; but the directory is root's.
    const stream = await execProgram(container, ["chmod", "1777", directory], "0:0");
    await finished(stream.resume(), { writable: false }).catch(() => {});
  }
}
