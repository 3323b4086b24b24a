import { spawnSync } from "node:child_process";

/** How sessions are isolated from the host and from each other. */
export interface Fence {
  /**
   * `namespaces`: a session has its own process ids, `/tmp` and `/mnt/data`. `none`: it is an ordinary process, and
   * the session's directory replaces `/mnt/data` in the text of its code.
   */
  readonly kind: "namespaces" | "none";
  /** The command that runs `command` behind the fence, with `directory` as its `/mnt/data`. */
  wrap(command: readonly string[], directory: string): readonly [string, ...string[]];
}

const namespaces = ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
const variants = [namespaces, ["--user", "--map-root-user", ...namespaces]];

/** Capabilities with which a root session could change the machine itself. It keeps the capabilities for files and processes. */
const machine =
  "sys_admin,sys_module,sys_rawio,sys_boot,sys_time,sys_ptrace,sys_resource,mknod,net_admin,net_raw,syslog";
const without = machine.replaceAll(/(^|,)/g, "$1-");
/** Drops these for good, including in child processes. */
const dropping = ["setpriv", "--no-new-privs", `--bounding-set=${without}`, `--inh-caps=${without}`];

/** Mounts the session's directory before covering `/tmp`, which may contain it. */
const mountProgram = `
mount -t tmpfs tmpfs /mnt && mkdir /mnt/data && mount --bind "$1" /mnt/data && mount -t tmpfs tmpfs /tmp && cd /tmp &&
shift && exec "$@"`;

let found: Fence | undefined;

/** The best fence that this system allows: Linux namespaces, as root or as a user who may create them, otherwise none. */
export function findFence(): Fence {
  found ??= probe();
  return found;
}

/** No fence. */
export const noFence: Fence = {
  kind: "none",
  wrap: ([program = "", ...words]) => [program, ...words],
};

function probe(): Fence {
  if (process.platform !== "linux") return noFence;
  for (const flags of variants) {
    for (const before of [dropping, []]) {
      const fence = unshare(flags, before);
      const [program, ...words] = fence.wrap(["true"], "/");
      const { status } = spawnSync(program, words, { stdio: "ignore", timeout: 10_000 });
      if (status === 0) return fence;
    }
  }
  return noFence;
}

function unshare(flags: readonly string[], before: readonly string[]): Fence {
  return {
    kind: "namespaces",
    wrap: (command, directory) => {
      const program = [...before, ...command];
      return ["unshare", ...flags, "sh", "-c", mountProgram, "session", directory, ...program];
    },
  };
}
