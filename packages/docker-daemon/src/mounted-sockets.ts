import type { BigIntStats } from "node:fs";
import { lstat, open, readFile, readlink, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { InvalidInputError } from "@fenced/core";
import { answered, isNotFound } from "./daemon-calls.ts";
import { type DaemonClient, daemonSocketPlaces } from "./find-daemon.ts";

/** Something of the daemon's host that a container is to see. */
export interface MountSource {
  /** The option that names it, for the message. */
  readonly option: string;
  /** A path on the daemon's host, or the name of a volume. */
  readonly source: string;
  /** Refuse only the sockets of container daemons, for directories that several executors share. */
  readonly shared?: boolean;
}

const socketNames: ReadonlySet<string> = new Set(["docker.sock", "podman.sock", "containerd.sock", "crio.sock"]);
const usualPlaces: readonly string[] = [
  "/run/docker.sock",
  "/var/run/docker.sock",
  "/run/podman/podman.sock",
  "/run/containerd/containerd.sock",
  "/run/crio/crio.sock",
];

/** Linux's `O_PATH`, for which Node has no constant: opens even what cannot be read, such as a socket. */
const pathOnly = 0o10_000_000;

/** Why no hardened container may see the socket of a container daemon, in the words of an option's error. */
export const daemonSocketRefusal: string =
  "must not be or contain the socket of a container daemon, which gives the code root access to the host";

/** True if a path, by its text alone, is the socket of a container daemon or contains the usual ones. */
export function holdsDaemonSocket(source: string): boolean {
  const normal = path.posix.resolve(source);
  return socketNames.has(path.posix.basename(normal)) || usualPlaces.some((place) => isBelow(place, normal));
}

/** True if a volume's source is a directory of the daemon's host rather than a volume's name. */
export function isPath(source: string): boolean {
  return source.startsWith("/") || /^[A-Za-z]:[\\/]/.test(source);
}

/**
 * Checks what a hardened container is to see of the daemon's host: no socket of a container daemon, whatever path or
 * volume leads to it, and no directory in which programs listen on sockets, because code could talk to them. A socket
 * that is named itself is accepted, unless it is a daemon's.
 *
 * @returns what was checked, for `refuseReplaced`: the device and inode of each source that is a path, if it exists.
 * @throws InvalidInputError that names the option.
 */
export async function refuseSockets(
  daemon: DaemonClient,
  sources: readonly MountSource[],
): Promise<ReadonlyMap<string, string>> {
  const checked = new Map<string, string>();
  if (sources.length === 0) return checked;
  const daemons = await Promise.all(daemonPlaces(daemon).map(resolved));
  for (const { option, source, shared = false } of sources) {
    const { places, bound } = isPath(source) ? { places: [source], bound: source } : await volumePlaces(daemon, source);
    for (const place of places) {
      const real = await resolved(place);
      const leads =
        holdsDaemonSocket(place) || holdsDaemonSocket(real.path) || daemons.some((each) => isSame(each, real));
      if (leads) throw refusal(option, `${JSON.stringify(source)} ${daemonSocketRefusal}`);
      if (place === bound && real.identity !== undefined) checked.set(source, real.identity);
      if (shared || !real.directory) continue;
      const [first] = await listeningBelow(real.path);
      if (first === undefined) continue;
      throw refusal(
        option,
        `${JSON.stringify(source)} contains ${first}, the socket of a program that code could talk to`,
      );
    }
  }
  return checked;
}

interface VolumePlaces {
  readonly places: readonly string[];
  /** The directory that it is another name for. */
  readonly bound: string | undefined;
}

interface Place {
  readonly path: string;
  readonly identity: string | undefined;
  readonly directory: boolean;
}

function daemonPlaces({ transport }: DaemonClient): readonly string[] {
  const own = transport.kind === "socket" ? [transport.path] : [];
  return [...own, ...usualPlaces, ...daemonSocketPlaces()];
}

async function resolved(place: string): Promise<Place> {
  try {
    const { real, found } = await (process.platform === "linux" ? lookAt(place) : lookFor(place));
    return { path: real, identity: `${found.dev}:${found.ino}`, directory: found.isDirectory() };
  } catch {
    return { path: path.resolve(place), identity: undefined, directory: false };
  }
}

interface Found {
  readonly real: string;
  readonly found: BigIntStats;
}

/** Asks for the path and the identity of the same thing, whatever code does to the path meanwhile. */
async function lookAt(place: string): Promise<Found> {
  const handle = await open(place, pathOnly);
  try {
    return { real: await readlink(`/proc/self/fd/${handle.fd}`), found: await handle.stat({ bigint: true }) };
  } finally {
    await handle.close();
  }
}

async function lookFor(place: string): Promise<Found> {
  const real = await realpath(place);
  return { real, found: await stat(real, { bigint: true }) };
}

/** True if a mounted place is a daemon's socket, under any name, or a directory that contains it. */
function isSame(socket: Place, mounted: Place): boolean {
  if (socket.identity === undefined) return false;
  return socket.identity === mounted.identity || isBelow(socket.path, mounted.path);
}

function isBelow(file: string, directory: string): boolean {
  return file === directory || file.startsWith(directory.endsWith("/") ? directory : `${directory}/`);
}

/** Where a named volume is; a volume can be another name for any directory, which it then is in the container. */
async function volumePlaces({ docker }: DaemonClient, name: string): Promise<VolumePlaces> {
  try {
    const { Options: options, Mountpoint: point } = await answered(docker.getVolume(name).inspect(), "volume inspect");
    const device: unknown = options?.["device"];
    const places = [point, device].filter((each) => typeof each === "string").filter((each) => isPath(each));
    const isBound = typeof device === "string" && String(options?.["o"]).split(",").includes("bind");
    return { places, bound: isBound ? device : undefined };
  } catch (error) {
    // It will be created, and is then empty.
    if (isNotFound(error)) return { places: [], bound: undefined };
    throw error;
  }
}

/** The sockets below a directory of this machine on which a program listens, as far as Linux tells. */
async function listeningBelow(directory: string): Promise<readonly string[]> {
  const table = await readFile("/proc/net/unix", "utf8").catch(() => "");
  const below: string[] = [];
  for (const row of table.split("\n")) {
    // Num RefCount Protocol Flags Type St Inode Path; a listening socket has the flag __SO_ACCEPTCON.
    const [, flags, name] = /^\S+ \S+ \S+ (\S+) \S+ \S+ +\d+ (\/.*)$/.exec(row) ?? [];
    if (flags !== "00010000" || name === undefined || !isBelow(name, directory)) continue;
    // Programs with other file systems, such as those in containers, are in the table too.
    const found = await lstat(name).catch(() => undefined);
    if (found?.isSocket() === true) below.push(name);
  }
  return below;
}

function refusal(option: string, why: string): InvalidInputError {
  return new InvalidInputError(`\`${option}\`: ${why}`, {
    remedy:
      "Mount another directory, or the socket itself if it is not a daemon's and code may use it; or set `hardened: false`.",
    option,
  });
}
