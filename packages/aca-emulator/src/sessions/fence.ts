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

/** A session's own directory, which hides what the host has there. */
const hidden = "/tmp/";

/**
 * Mounts the session's directory and the places to show before covering `/tmp`, which may contain them. Its arguments:
 * that directory, those places, `--`, and the command.
 */
const mountProgram = `
mount -t tmpfs tmpfs /mnt && mkdir /mnt/data && mount --bind "$1" /mnt/data || exit
shift
number=0
for place; do
  [ "$place" = -- ] && break
  number=$((number + 1)); mkdir "/mnt/$number" && mount --rbind "$place" "/mnt/$number" || exit
done
mount -t tmpfs tmpfs /tmp || exit
number=0
while [ "$1" != -- ]; do
  number=$((number + 1)); mkdir -p "$1" && mount --move "/mnt/$number" "$1" && rmdir "/mnt/$number" || exit
  shift
done
shift; cd /tmp && exec "$@"`;

let found: ((shown: readonly string[]) => Fence) | undefined;

/**
 * The best fence that this system allows: Linux namespaces, as root or as a user who may create them, otherwise none.
 *
 * @param shown - directories that programs need. The fence hides the host's `/tmp`, except for these.
 */
export function findFence(shown: readonly string[]): Fence {
  found ??= probe();
  const below = [...new Set(shown)].filter((each) => each.startsWith(hidden));
  return found(below.filter((each) => !below.some((other) => each.startsWith(`${other}/`))));
}

/** No fence. */
export const noFence: Fence = {
  kind: "none",
  wrap: ([program = "", ...words]) => [program, ...words],
};

function probe(): (shown: readonly string[]) => Fence {
  if (process.platform !== "linux") return () => noFence;
  for (const flags of variants) {
    for (const before of [dropping, []]) {
      const [program, ...words] = unshare({ flags, before, shown: [] }).wrap(["true"], "/");
      const { status } = spawnSync(program, words, { stdio: "ignore", timeout: 10_000 });
      if (status === 0) return (shown) => unshare({ flags, before, shown });
    }
  }
  return () => noFence;
}

function unshare(how: Readonly<Record<"flags" | "before" | "shown", readonly string[]>>): Fence {
  const start = ["unshare", ...how.flags, "sh", "-c", mountProgram, "session"] as const;
  return {
    kind: "namespaces",
    wrap: (command, directory) => [...start, directory, ...how.shown, "--", ...how.before, ...command],
  };
}
