import { readFileSync } from "node:fs";
import { supervisorContinuation } from "@fenced/executor-kit/supervisor";
import { realPath } from "./find-installations.ts";
import type { SandboxLimits } from "./limit-groups.ts";
import { deviceNames, withReadOnlyDevices } from "./read-only-devices.ts";
import type { SharedPath } from "./shared-paths.ts";
import { procOptions, systemOptions } from "./system-directories.ts";

const enterProgram: string = readFileSync(new URL("./enter.py", import.meta.url), "utf8");

/** A file in `/etc`. Never a file of the host, which code could replace if it can write to the directory. */
export interface SettingsFile {
  readonly name: string;
  readonly text: string;
}

/** The contents of a sandbox. */
export interface SandboxPlan {
  /** Absolute path of bubblewrap. */
  readonly bubblewrap: string;
  /** What to share in addition to the system's directories, outer directories first. */
  readonly shared: readonly SharedPath[];
  /** Sockets and pipes of the host in what is shared, to hide: they lead to processes outside. */
  readonly waysOut: readonly string[];
  /** The sandbox's own files in `/etc`: `passwd`, for example. */
  readonly settings: readonly SettingsFile[];
  /** Absolute path of the directory that the supervisor creates for itself in the sandbox. */
  readonly directory: string;
  readonly workspace: string;
  /** Programs that the supervisor looks for, and the `PATH` to search. */
  readonly programs: readonly string[];
  readonly searchPath: string;
  /** The `PATH` for programs that run outside. */
  readonly trustedPath: string;
  /** The supervisor's program as the sandbox's Python has compiled it, if that is known. */
  readonly compiled: Uint8Array | undefined;
  readonly network: "none" | "open";
  readonly limits: SandboxLimits;
  /** The user and group of this process. */
  readonly user: { readonly uid: number; readonly gid: number };
}

/** The descriptor from which bubblewrap reads the system call filter. */
export const filterDescriptor = 3;

/** The descriptor to which bubblewrap writes the id of the process that it started. */
export const infoDescriptor = 4;

/** The first of the descriptors from which bubblewrap reads the settings files. */
export const firstSettingsDescriptor = 5;

/**
 * The id to use instead of root inside the sandbox, because programs that run as root try things that only root may do.
 */
const insteadOfRoot = 1000;

/** Files that the sandbox shows and that belong to the whole machine; it must not be able to change their modes. */
const hostFiles = ["/proc/meminfo", ...deviceNames.map((each) => `/dev/${each}`)];

/** The user or group id inside the sandbox. */
export function userInside(id: number): number {
  return id === 0 ? insteadOfRoot : id;
}

/** How a sandbox starts. */
export interface SandboxStart {
  readonly command: readonly [string, ...string[]];
  /** What to write to its standard input first. */
  readonly input: Uint8Array;
}

/**
 * Starts a sandbox with a supervisor as its first process.
 *
 * @param control - the descriptor that leads to the server of its session. Default: it has none.
 */
export function sandboxStart(plan: SandboxPlan, control?: number): SandboxStart {
  const { directory, workspace, programs, searchPath, compiled } = plan;
  const node = { path: realPath(process.execPath), version: process.version };
  const keeper = control === undefined ? {} : { keeper: `server:${control}` };
  const supervisor = { directory, workspace, programs, path: searchPath, alone: true, node, ...keeper };
  const { python, program } = supervisorContinuation(supervisor, compiled);
  const words = [...namespaceOptions(plan), ...rootOptions(plan), "--", ...firstProcess(plan, python, control)];
  const command: [string, ...string[]] = [plan.bubblewrap, ...words];
  return { command: plan.user.uid === 0 ? withReadOnlyDevices(command, plan.trustedPath) : command, input: program };
}

function namespaceOptions({ network, user }: SandboxPlan): string[] {
  return [
    ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
    network === "none" ? ["--unshare-net"] : [],
    ["--uid", String(userInside(user.uid)), "--gid", String(userInside(user.gid)), "--hostname", "sandbox"],
    ["--cap-drop", "ALL", "--new-session", "--die-with-parent", "--as-pid-1"],
    ["--seccomp", String(filterDescriptor), "--info-fd", String(infoDescriptor)],
  ].flat();
}

function rootOptions({ shared, waysOut, settings, network, limits, workspace, user }: SandboxPlan): string[] {
  return [
    systemOptions(),
    settings.flatMap(({ name }, index) => file(firstSettingsDescriptor + index, `/etc/${name}`)),
    // Mounted explicitly, because it is usually a link to a directory that is not shared.
    network === "open" ? ["--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"] : [],
    procOptions(),
    ["--dev", "/dev", "--size", String(limits.temporaryBytes), "--tmpfs", "/dev/shm"],
    ["--size", String(limits.temporaryBytes), "--tmpfs", "/tmp", "--symlink", "../tmp", "/var/tmp"],
    shared.flatMap(({ source, place, mode }) => [mode === "read" ? "--ro-bind" : "--bind", source, place]),
    waysOut.flatMap((each) => ["--ro-bind", "/dev/null", each]),
    limits.events.flatMap(({ source, place }) => ["--ro-bind", source, place]),
    // The mode of an entry such as `/proc/meminfo` is the same in every `/proc` of the machine, and root's to change.
    user.uid === 0 ? ["--remount-ro", "/proc"] : [],
    ["--remount-ro", "/", "--remount-ro", "/dev", "--chdir", workspace],
  ].flat();
}

/**
 * A copy in the sandbox's own root directory, which becomes read-only. A mount takes bubblewrap several times as long, because it
 * reads the table of all mounts after each.
 */
function file(descriptor: number, place: string): string[] {
  return ["--perms", "0444", "--file", String(descriptor), place];
}

/** @param next - the Python with which its program ends. */
function firstProcess({ limits, shared }: SandboxPlan, next: string, control: number | undefined): string[] {
  const { processes, data } = limits.each;
  // Bubblewrap finds what it shows by name, and code elsewhere may have changed that meanwhile.
  const checked = shared.filter(({ identity }) => identity !== undefined);
  return [
    ["python3", "-I", "-S", "-X", "utf8", "-c", `${enterProgram}\n${next}`],
    [control, processes, data].map((each) => String(each ?? "")),
    hostFiles.join(" "),
    checked.flatMap(({ identity = "", place }) => [identity, place]),
  ].flat();
}
