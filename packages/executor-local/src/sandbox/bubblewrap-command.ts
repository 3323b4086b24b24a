import { readFileSync } from "node:fs";
import { supervisorCommand } from "@fenced/executor-kit/supervisor";
import type { SandboxLimits } from "./limit-groups.ts";
import type { SharedPath } from "./shared-paths.ts";
import { procOptions, systemOptions } from "./system-directories.ts";

const enterProgram: string = readFileSync(new URL("./enter.py", import.meta.url), "utf8");

/** What a sandbox is made of. */
export interface SandboxPlan {
  /** Bubblewrap itself. Absolute path. */
  readonly bubblewrap: string;
  /** Besides the system's directories, outer ones first. */
  readonly shared: readonly SharedPath[];
  /** The directory of the host with the sandbox's own `passwd`, `group`, `hosts` and `nsswitch.conf`. Absolute path. */
  readonly settings: string;
  /** The directory that the supervisor makes for itself in the sandbox. Absolute path. */
  readonly directory: string;
  readonly workspace: string;
  /** Programs that the supervisor looks for, and the `PATH` to look on. */
  readonly programs: readonly string[];
  readonly searchPath: string;
  readonly network: "none" | "open";
  readonly limits: SandboxLimits;
  /** Who this process is. */
  readonly user: { readonly uid: number; readonly gid: number };
}

/** The descriptor over which bubblewrap is given the filter of system calls. */
export const filterDescriptor = 3;

/** The descriptor over which bubblewrap says which process it has started. */
export const infoDescriptor = 4;

/** Inside, root is somebody else: programs that find themselves to be root try what only root may. */
const insteadOfRoot = 1000;

/** Who programs are in the sandbox. */
export function userInside(id: number): number {
  return id === 0 ? insteadOfRoot : id;
}

/** The command that starts a sandbox with a supervisor as its first process. */
export function bubblewrapCommand(plan: SandboxPlan): [string, ...string[]] {
  return [plan.bubblewrap, ...namespaceOptions(plan), ...rootOptions(plan), "--", ...firstProcess(plan)];
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

function rootOptions({ shared, settings, network, limits, workspace }: SandboxPlan): string[] {
  const files = ["passwd", "group", "hosts", "nsswitch.conf"];
  return [
    systemOptions(),
    files.flatMap((each) => ["--ro-bind", `${settings}/${each}`, `/etc/${each}`]),
    // Usually a link to a directory that is not shared.
    network === "open" ? ["--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf"] : [],
    procOptions(),
    ["--dev", "/dev", "--size", String(limits.temporaryBytes), "--tmpfs", "/dev/shm"],
    ["--size", String(limits.temporaryBytes), "--tmpfs", "/tmp", "--symlink", "../tmp", "/var/tmp"],
    shared.flatMap(({ source, place, mode }) => [mode === "read" ? "--ro-bind" : "--bind", source, place]),
    limits.events.flatMap(({ source, place }) => ["--ro-bind", source, place]),
    ["--remount-ro", "/", "--remount-ro", "/dev", "--chdir", workspace],
  ].flat();
}

function firstProcess({ directory, workspace, programs, searchPath, limits }: SandboxPlan): string[] {
  const { processes, data } = limits.each;
  const supervisor = supervisorCommand({ directory, workspace, programs, path: searchPath, alone: true });
  return ["python3", "-I", "-S", "-c", enterProgram, String(processes ?? ""), String(data ?? ""), ...supervisor];
}
