import { lstat, readFile } from "node:fs/promises";
import { BackendUnavailableError } from "@fenced/core";

/** A directory or file of this host that was mounted into a container. */
export interface MountedSource {
  readonly source: string;
  /** Its path in the container. */
  readonly target: string;
  /** `device:inode` of what was checked; `undefined` if it did not exist on this host. */
  readonly identity: string | undefined;
}

/** What a program in a container says about its mounts. */
export interface SeenMounts {
  /** The boot id of its kernel; `undefined` if it is unknown. */
  readonly kernel?: string;
  /** `device:inode` by path; `?` for one below a directory that the container's user may not enter. */
  readonly mounts: ReadonlyMap<string, string>;
}

const unreachable = "?";

/**
 * Compares what was checked with what was mounted. A daemon mounts by name, so code of another container can replace a
 * directory that it may write to between the check and the mount. Only a container on the same kernel can be compared:
 * not one of a remote daemon, of Docker Desktop, or in a virtual machine or gVisor.
 *
 * What the container's user cannot reach is accepted, unless other code could let it in later: below another mount.
 *
 * @throws BackendUnavailableError if something else was mounted, or if the container does not say what.
 */
export async function refuseReplaced(sources: readonly MountedSource[], seen: SeenMounts): Promise<void> {
  const kernel = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
  if (seen.kernel === undefined || seen.kernel !== kernel.trim()) return;
  for (const { source, target, identity } of sources) {
    const mounted = seen.mounts.get(target);
    if (mounted !== undefined && mounted === identity) continue;
    if (mounted === unreachable && !sources.some((other) => target.startsWith(`${other.target}/`))) continue;
    // A path that never existed here is one of the daemon's host, if this program runs in a container itself.
    if (identity === undefined && !(await exists(source))) continue;
    if (mounted === undefined) {
      throw new BackendUnavailableError(`The container does not say what was mounted at ${target}`, {
        remedy:
          "Code of another executor could have replaced it, so it must be checked: use an image with Python 3.8 or later, or with a `stat` that knows `-L` and `-c`, as that of coreutils and BusyBox does.",
      });
    }
    throw new BackendUnavailableError(`${source} was replaced by something else when it was mounted into a container`, {
      remedy:
        "Code may have moved it: mount only directories that the code of other executors cannot replace. If your program runs in a container, mount the same directory there at the same path.",
    });
  }
}

async function exists(file: string): Promise<boolean> {
  return lstat(file).then(
    () => true,
    () => false,
  );
}
