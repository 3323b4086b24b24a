import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { answered, type Container, isNotFound } from "./daemon-calls.ts";
import { blockSize, tarEnd, tarEntry } from "./tar-entry.ts";

/** Identifiers that images have a name for: root and nobody. */
const named: readonly number[] = [0, 65_534];
const name = "sandbox";
const mostKnown = 1000;

/**
 * Gives the user of a container a name, unless the image has one for it: `getpass.getuser()`, `whoami` and
 * `os.userInfo()` fail for a user that is only a number. Call it before the container starts. Does nothing if the
 * container's files cannot be changed.
 *
 * @param user - `uid` or `uid:gid`; any other form is a name that the image knows.
 * @param home - the user's home directory, which need not exist.
 */
export async function nameUser(container: Container, user: string | undefined, home: string): Promise<void> {
  const [, uid, gid = uid] = /^(\d+)(?::(\d+))?$/.exec(user ?? "") ?? [];
  if (uid === undefined || named.includes(Number(uid))) return;
  try {
    const [passwd, group] = await namesOf(container);
    const files = [
      ...added("passwd", passwd, uid, (free) => `${free}:x:${uid}:${gid}::${home}:/bin/sh`),
      ...added("group", group, gid ?? uid, (free) => `${free}:x:${gid}:`),
    ];
    if (files.length === 0) return;
    const archive = Buffer.concat([...files, tarEnd]);
    await answered(container.putArchive(archive, { path: "/etc" }), "container archive");
  } catch {
    // Programs still run; only those that ask for the user's name fail. A read-only root file system is one reason.
  }
}

/** The texts of `/etc/passwd` and `/etc/group` by image, because daemons take long to read a file. */
const known = new Map<string, Promise<readonly [passwd: string, group: string]>>();

async function namesOf(container: Container): Promise<readonly [passwd: string, group: string]> {
  const { Image: image } = await answered(container.inspect(), "container inspect");
  const names =
    known.get(image) ?? Promise.all([readFile(container, "/etc/passwd"), readFile(container, "/etc/group")]);
  if (known.size < mostKnown) known.set(image, names);
  try {
    return await names;
  } catch (error) {
    known.delete(image);
    throw error;
  }
}

/** The file with one more line, as a tar entry; nothing if it already names the number. */
function added(file: string, text: string, id: string | undefined, line: (free: string) => string): Buffer[] {
  const rows = text.split("\n").map((row) => row.split(":"));
  if (rows.some((row) => row[2] === id)) return [];
  const free = rows.some((row) => row[0] === name) ? `${name}-${id}` : name;
  const kept = text === "" || text.endsWith("\n") ? text : `${text}\n`;
  return [tarEntry(file, Buffer.from(`${kept}${line(free)}\n`))];
}

/** @returns the content of a file in a container; nothing if it is missing. */
async function readFile(container: Container, path: string): Promise<string> {
  const asked = container.getArchive({ path });
  const archive = await answered(asked, "container archive").catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
  if (archive === undefined) return "";
  const tar = await buffer(Readable.from(archive));
  // Anything but a regular file, such as a link, is left as it is.
  if (!["0", "\0"].includes(tar.toString("latin1", 156, 157))) throw new Error(`${path} is not a file`);
  return tar.toString("utf8", blockSize, blockSize + Number.parseInt(tar.toString("latin1", 124, 135), 8));
}
