import { type OptionSchemas, wholeNumberOption } from "@fenced/core/options";
import type { HostConfig } from "dockerode";
import { z } from "zod";
import type { RuntimeKernel } from "./container-runtime.ts";

/** Limits and privileges of a container. */
export interface ContainerLimits {
  /** Drop all capabilities, forbid new privileges, and limit memory and processes. Default: true. */
  readonly hardened?: boolean | undefined;
  /** Memory limit in bytes, including swap; at least 6 MiB. Default: 1 GiB if hardened, else no limit. */
  readonly memoryBytes?: number | undefined;
  /** CPU limit; fractions are allowed (1.5). Default: no limit. */
  readonly cpus?: number | undefined;
  /**
   * Maximum number of processes and threads, which includes those of gVisor. Default: 512 if hardened, or 2048 in gVisor, which
   * needs several for each process; else no limit.
   */
  readonly pidsLimit?: number | undefined;
  /**
   * Mount the root filesystem read-only; only mounts and `/tmp` are writable. `/tmp` is then a tmpfs that counts
   * towards the container's memory and holds at most half of `memoryBytes`. Default: false.
   */
  readonly readOnlyRootFilesystem?: boolean | undefined;
  /**
   * The OCI runtime, by the name that the daemon has for it: `"runsc"` (gVisor) or `"kata"`. `"auto"` takes the strongest
   * one that is registered with the daemon: one with a kernel of its own (Kata Containers, krun), otherwise gVisor,
   * otherwise the default; see `capabilities.kernel`. With Podman, which also lists runtimes that it does not have, that is the
   * default. Default: the daemon's.
   */
  readonly runtime?: string | undefined;
}

const hardenedMemoryBytes = 1_073_741_824;
const hardenedPidsLimit = 512;
/** gVisor has some 40 threads of its own, and 3 for each process: it ends with the whole container if it gets no more. */
function hardenedPids(kernel: RuntimeKernel): number {
  return kernel === "user-space" ? 4 * hardenedPidsLimit : hardenedPidsLimit;
}

/** The minimum that Docker accepts. */
const leastMemory = 6_291_456;
const leastPids = 8;

/** The schemas of the limits, for the options of anything that runs in a container. */
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

/** The container's memory limit in bytes; `undefined` for no limit. */
export function memoryLimit({ memoryBytes, hardened = true }: ContainerLimits): number | undefined {
  return memoryBytes ?? (hardened ? hardenedMemoryBytes : undefined);
}

/**
 * The limits in the form of the daemon's API.
 *
 * @param kernel - for the container's code; `undefined` if not known.
 */
export function limitsConfig(limits: ContainerLimits, kernel?: RuntimeKernel): HostConfig {
  const hardened = limits.hardened ?? true;
  const memory = memoryLimit(limits);
  const pids = limits.pidsLimit ?? (hardened ? hardenedPids(kernel) : undefined);
  return {
    // Reaps orphaned processes.
    Init: true,
    ...(hardened ? { CapDrop: ["ALL"], SecurityOpt: ["no-new-privileges"] } : {}),
    // Includes swap; otherwise the limit would be twice the requested one.
    ...(memory === undefined ? {} : { Memory: memory, MemorySwap: memory, ShmSize: memoryFiles(memory) }),
    ...(pids === undefined ? {} : { PidsLimit: pids }),
    ...(limits.cpus === undefined ? {} : { NanoCpus: Math.round(limits.cpus * 1e9) }),
    ...(limits.runtime === undefined ? {} : { Runtime: limits.runtime }),
    ...(limits.readOnlyRootFilesystem === true ? { ReadonlyRootfs: true, Tmpfs: { "/tmp": tmpfs(memory) } } : {}),
  };
}

/**
 * Files and directories of `/proc` that belong to the whole machine, and that containers show. The first five are
 * read-only by default; the daemon ignores those that do not exist.
 */
const kernelPaths: readonly string[] = [
  ["bus", "fs", "irq", "sys", "sysrq-trigger"],
  ["buddyinfo", "cgroups", "cmdline", "config.gz", "consoles", "cpuinfo", "crypto", "devices", "diskstats", "dma"],
  ["driver", "dynamic_debug", "execdomains", "fb", "filesystems", "interrupts", "iomem", "ioports", "kallsyms"],
  ["key-users", "kmsg", "kpagecgroup", "kpagecount", "kpageflags", "loadavg", "locks", "mdstat", "meminfo", "misc"],
  ["modules", "mtrr", "pagetypeinfo", "partitions", "pressure", "schedstat", "slabinfo", "softirqs", "stat", "swaps"],
  ["sysvipc", "tty", "uptime", "version", "vmallocinfo", "vmstat", "zoneinfo"],
]
  .flat()
  .map((each) => `/proc/${each}`);

/**
 * Keeps root in a hardened container from changing the modes of these files: they are the same in every `/proc` of the
 * machine.
 *
 * @param user - of the container; `undefined` for the image's.
 */
export function kernelFiles(user: string | undefined, hardened = true): HostConfig {
  const isRoot = user === undefined || /^(0|root)(:|$)/.test(user);
  return hardened && isRoot ? { ReadonlyPaths: [...kernelPaths] } : {};
}

/**
 * The size of each directory that is in the container's memory. If it were larger, files could use up all memory, so
 * that no program could run. `/dev/shm` otherwise has 64 MiB, and a program that uses more ends by SIGBUS.
 */
function memoryFiles(memory: number): number {
  return Math.floor(memory / 2);
}

/** Not `noexec`, because packages with compiled code are installed there. */
function tmpfs(memory: number | undefined): string {
  const size = memory === undefined ? "" : `,size=${memoryFiles(memory)}`;
  return `rw,exec,nosuid,nodev,mode=1777${size}`;
}

/** The kernel's limit is 64. */
const longestHostName = 63;

/**
 * The settings of a container without a network, in which its own host name would otherwise not resolve. By default, the
 * host name is the container's id, which nobody knows before the container exists; so it is the container's name, with
 * which `docker` commands find the container, too.
 */
export function ownHostName(containerName: string): { readonly Hostname: string; readonly ExtraHosts: string[] } {
  // The end of a long name is what differs from others.
  const name = containerName.slice(-longestHostName).replaceAll(/^[-._]+|[-._]+$/g, "");
  return { Hostname: name, ExtraHosts: [`${name}:127.0.0.1`] };
}

/** A numeric user and group id. */
export interface UserAndGroup {
  readonly uid: number;
  readonly gid: number;
}

/** The user that the code in a container runs as. */
export interface ContainerUser {
  /** In the form of the API; `undefined` for the image's user. */
  readonly name: string | undefined;
  /**
   * The owner to set for what this process creates as root in the shared directory, so that the user can write to it.
   */
  readonly giveTo?: UserAndGroup;
}

/** The user that owns no files: `nobody` on Linux. */
const nobody: UserAndGroup = { uid: 65_534, gid: 65_534 };

/**
 * The user for code that shares a directory with this host: the directory's owner, so that what the code writes belongs
 * to the caller. If the caller is root and the directory was created for a hardened container, it is given to nobody
 * instead.
 *
 * @param user - the user that the caller asked for.
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
  // Root in a rootless daemon's container is the user who started the daemon.
  if (rootless) return { name: "0:0" };
  if (caller === undefined) return { name: hardened ? nameOf(nobody) : undefined };
  if (caller !== 0) return { name: `${caller}:${process.getgid?.() ?? caller}` };
  if (!directory.given && hardened) return { name: nameOf(nobody), giveTo: nobody };
  return { name: nameOf(directory.owner), giveTo: directory.owner };
}

/** The user for code that shares no directory; `undefined` for the image's user. */
export function userForVolume(user: string | undefined, hardened: boolean): string | undefined {
  return user ?? (hardened ? nameOf(nobody) : undefined);
}

function nameOf({ uid, gid }: UserAndGroup): string {
  return `${uid}:${gid}`;
}
