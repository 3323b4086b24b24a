import { stat } from "node:fs/promises";
import { type OptionSchemas, wholeNumberOption } from "@fenced/core/options";
import type { HostConfig } from "dockerode";
import { z } from "zod";
import { answered, type DaemonClient } from "./daemon-client.ts";

/** What a container may do and use. */
export interface ContainerLimits {
  /** No capabilities, no new privileges, and limits for memory and processes. Default: true. */
  readonly hardened?: boolean;
  /** Bytes of memory, swap included, from 6 MiB. Default: 1 GiB if hardened, else no limit. */
  readonly memoryBytes?: number;
  /** CPU limit; fractions are allowed (1.5). Default: no limit. */
  readonly cpus?: number;
  /** Processes and threads at a time. Default: 512 if hardened, else no limit. */
  readonly pidsLimit?: number;
  /**
   * Mount the root filesystem read-only; only mounts and `/tmp` are writable. `/tmp` is then in memory, which counts as the
   * container's, and takes at most half of `memoryBytes`. Default: false.
   */
  readonly readOnlyRootFilesystem?: boolean;
  /** The OCI runtime, e.g. `"runsc"` (gVisor) or `"kata"`. Default: the daemon's. */
  readonly runtime?: string;
}

const hardenedMemoryBytes = 1_073_741_824;
const hardenedPidsLimit = 512;
/** Docker starts no container with less. */
const leastMemory = 6_291_456;
const leastPids = 8;

/** The schemas of the limits, for the options of what runs in a container. */
export const containerLimits: OptionSchemas<ContainerLimits> = {
  hardened: z.boolean().exactOptional(),
  memoryBytes: wholeNumberOption({ from: leastMemory, unit: "bytes" }).exactOptional(),
  cpus: z.custom<number>(isCpuLimit, "must be a positive number of CPUs, e.g. 1.5").exactOptional(),
  pidsLimit: wholeNumberOption({ from: leastPids }).exactOptional(),
  readOnlyRootFilesystem: z.boolean().exactOptional(),
  runtime: z.string().min(1).exactOptional(),
};

function isCpuLimit(cpus: unknown): boolean {
  return typeof cpus === "number" && cpus > 0 && cpus < 1e6;
}

/** Bytes of memory that the container may use; `undefined`: no limit. */
export function memoryLimit({ memoryBytes, hardened = true }: ContainerLimits): number | undefined {
  return memoryBytes ?? (hardened ? hardenedMemoryBytes : undefined);
}

/** The limits, as the daemon's API takes them. */
export function limitsConfig(limits: ContainerLimits): HostConfig {
  const hardened = limits.hardened ?? true;
  const memory = memoryLimit(limits);
  const pids = limits.pidsLimit ?? (hardened ? hardenedPidsLimit : undefined);
  return {
    // Reaps processes that lost their parents.
    Init: true,
    ...(hardened ? { CapDrop: ["ALL"], SecurityOpt: ["no-new-privileges"] } : {}),
    // Swap counts as memory, or the limit would be twice what was asked for.
    ...(memory === undefined ? {} : { Memory: memory, MemorySwap: memory }),
    ...(pids === undefined ? {} : { PidsLimit: pids }),
    ...(limits.cpus === undefined ? {} : { NanoCpus: Math.round(limits.cpus * 1e9) }),
    ...(limits.runtime === undefined ? {} : { Runtime: limits.runtime }),
    ...(limits.readOnlyRootFilesystem === true ? { ReadonlyRootfs: true, Tmpfs: { "/tmp": tmpfs(memory) } } : {}),
  };
}

/**
 * Without a size of its own a full `/tmp` would take all of the container's memory, and no program could run any more.
 * Not `noexec`: packages with compiled code are installed there.
 */
function tmpfs(memory: number | undefined): string {
  const size = memory === undefined ? "" : `,size=${Math.floor(memory / 2)}`;
  return `rw,exec,nosuid,nodev,mode=1777${size}`;
}

/** A user and a group, in numbers. */
export interface UserAndGroup {
  readonly uid: number;
  readonly gid: number;
}

/** Who the code in a container runs as. */
export interface ContainerUser {
  /** As the API takes it; `undefined`: the image's. */
  readonly name: string | undefined;
  /** Who has to own what this process, root, makes in the shared directory, so that the user can write to it. */
  readonly giveTo?: UserAndGroup;
}

/** The user that owns nothing: `nobody` on Linux. */
const nobody: UserAndGroup = { uid: 65_534, gid: 65_534 };

/**
 * Who the code runs as where it shares a directory with this host: its owner, so that what the code writes belongs to the
 * caller. Only if the caller is root, and the directory was made for the container, is it given to nobody.
 *
 * @param user - the one that the caller asked for.
 * @param directory - its owner, and whether the caller gave it.
 */
export function userForBind(
  { user, hardened }: { readonly user: string | undefined; readonly hardened: boolean },
  directory: { readonly owner: UserAndGroup; readonly given: boolean },
  rootless: boolean,
): ContainerUser {
  const caller = process.getuid?.();
  if (user !== undefined) {
    const [, uid, gid = uid] = /^(\d+)(?::(\d+))?$/.exec(user) ?? [];
    const numbers = { uid: Number(uid), gid: Number(gid) };
    return { name: user, ...(caller === 0 && uid !== undefined ? { giveTo: numbers } : {}) };
  }
  // The root of a rootless daemon's container is the user who started the daemon.
  if (rootless) return { name: "0:0" };
  if (caller === undefined) return { name: hardened ? nameOf(nobody) : undefined };
  if (caller !== 0) return { name: `${caller}:${process.getgid?.() ?? caller}` };
  if (!directory.given && hardened) return { name: nameOf(nobody), giveTo: nobody };
  return { name: nameOf(directory.owner), giveTo: directory.owner };
}

/** Who the code runs as where it shares no directory; `undefined`: the image's user. */
export function userForVolume(user: string | undefined, hardened: boolean): string | undefined {
  return user ?? (hardened ? nameOf(nobody) : undefined);
}

/** Whether the daemon itself runs without root, and its containers' root is an ordinary user. */
export async function isRootless({ docker, transport }: DaemonClient): Promise<boolean> {
  // A rootless daemon's socket belongs to its user, so most need not be asked: that would take longer than a block.
  // Not `statSync`: after one of a socket, Node 20 and 22 resolve no import through a link (nodejs/node#51142).
  if (transport.kind === "socket") {
    const owner = await stat(transport.path).catch(() => undefined);
    if (owner?.uid === 0) return false;
  }
  const info: unknown = await answered(docker.info(), "info");
  const security: unknown =
    typeof info === "object" && info !== null ? Reflect.get(info, "SecurityOptions") : undefined;
  return Array.isArray(security) && security.some((each) => typeof each === "string" && each.includes("rootless"));
}

function nameOf({ uid, gid }: UserAndGroup): string {
  return `${uid}:${gid}`;
}
