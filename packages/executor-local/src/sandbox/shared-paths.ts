import { constants } from "node:fs";
import { open, readlink, realpath } from "node:fs/promises";
import path from "node:path";
import { InvalidInputError } from "@fenced/core";

/** Linux's `O_PATH`, for which Node has no constant: opens even unreadable files. */
const pathOnly = 0o10_000_000;

/** A file or directory of the host that programs in a sandbox see under its own path. */
export interface SharedPath {
  /** Absolute path of what is shared, without symbolic links. */
  readonly source: string;
  /** Absolute path in the sandbox. */
  readonly place: string;
  readonly mode: "read" | "write";
  /** The device and inode numbers of what was checked, as `DEVICE:INODE`; the sandbox must show the same. */
  readonly identity?: string;
}

/** What the user shares. */
export interface Shares {
  /** Absolute path without symbolic links. */
  readonly workDirectory: string;
  /** Identifies the work directory, as in `SharedPath`. */
  readonly identity: string;
  readonly readable: readonly string[];
  readonly writable: readonly string[];
}

/** Directories that each sandbox has its own version of; sharing them would open or break it. */
const whole: readonly string[] = ["/", "/tmp"];
const trees: readonly string[] = ["/proc", "/sys", "/dev"];

/** Why a path cannot be shared with a sandbox; `undefined` if it can. */
export function unshareable(place: string): string | undefined {
  const absolute = path.resolve(place);
  if (whole.includes(absolute)) {
    return `must not be ${absolute}: the sandbox has its own; name a directory inside it`;
  }
  const tree = trees.find((each) => isWithin(absolute, each));
  return tree === undefined ? undefined : `must not be in ${tree}: the sandbox has its own`;
}

/** True if a path is a directory or lies in it. Both must be absolute. */
export function isWithin(place: string, directory: string): boolean {
  return place === directory || place.startsWith(directory === "/" ? "/" : `${directory}/`);
}

/**
 * Resolves the shared paths, outer directories first.
 *
 * @throws InvalidInputError if a path does not exist, cannot be shared, or leads through a symbolic link that code in
 * an earlier sandbox may have created.
 */
export async function resolveShares({ workDirectory, identity, readable, writable }: Shares): Promise<SharedPath[]> {
  const shared: SharedPath[] = [{ source: workDirectory, place: workDirectory, mode: "write", identity }];
  for (const each of writable) shared.push(await resolveShare(each, "writable"));
  for (const each of readable) shared.push(await resolveShare(each, "readable"));
  const changeable = shared.filter(({ mode }) => mode === "write");
  for (const { place, source } of shared) {
    const outer = changeable.find((each) => each.place !== place && isWithin(place, each.place));
    if (outer && source !== path.join(outer.source, path.relative(outer.place, place))) throw throughLink(place, outer);
    const reason = unshareable(source);
    if (reason !== undefined) throw notShared(place, `it ${reason}`, "Choose another directory.");
  }
  return shared.toSorted((one, other) => one.place.length - other.place.length);
}

async function resolveShare(place: string, option: "readable" | "writable"): Promise<SharedPath> {
  const mode = option === "readable" ? "read" : "write";
  const { source, identity, leads } = await inspect(place).catch((cause: unknown) => {
    throw notShared(place, String(cause), `Correct the option \`${option}\`, or create the file or directory first.`);
  });
  if (leads !== undefined && mode === "read") {
    const reason = `it is a ${leads}, through which code can do more than read`;
    throw notShared(place, reason, `If you trust the code with what answers there, name the ${leads} in \`writable\`.`);
  }
  return { source, place, mode, identity };
}

/** What a path leads to now. What is open stays the same, whatever code puts in its place. */
async function inspect(
  place: string,
): Promise<{ readonly source: string; readonly identity: string; readonly leads: "socket" | "pipe" | undefined }> {
  const given = await realpath(place);
  await using handle = await open(given, process.platform === "linux" ? pathOnly : constants.O_RDONLY);
  const stats = await handle.stat({ bigint: true });
  const source = process.platform === "linux" ? await readlink(`/proc/self/fd/${handle.fd}`) : given;
  const leads = stats.isSocket() ? "socket" : stats.isFIFO() ? "pipe" : undefined;
  return { source, identity: `${stats.dev}:${stats.ino}`, leads };
}

function throughLink(place: string, { place: outer }: SharedPath): InvalidInputError {
  return notShared(
    place,
    `it is reached through a symbolic link in ${outer}, which the code can write to`,
    "Pass the path that the link points to, if you trust it.",
  );
}

/** The error for something that cannot be shared. */
export function notShared(place: string, reason: string, remedy: string): InvalidInputError {
  return new InvalidInputError(`${place} cannot be shared with the sandbox: ${reason}`, { remedy });
}
