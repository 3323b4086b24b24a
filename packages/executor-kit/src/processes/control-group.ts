import { access, constants, mkdir, opendir, readFile, rmdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PinnedDirectory } from "../workspace/pinned-directory.ts";
import { walkTree } from "../workspace/walk-tree.ts";

/** How long the system may take to end and clear away a group, in milliseconds. */
const deadlineMs = 10_000;

/**
 * A control group of Linux (version 2) for processes: whatever they start is in it, also what forks for ever, drops its
 * environment and starts sessions of its own, and all of it is ended at once. There is one only where this process may make
 * groups below its own: as root outside of containers, or where its group was delegated to it, as in a systemd user session. A
 * program that runs as root can leave it.
 */
export class ControlGroup {
  /** The group's directory. Absolute path. */
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  /** The group of a name, not made yet; `undefined` where this process may make none. */
  static async plan(name: string): Promise<ControlGroup | undefined> {
    const parent = await ownGroup();
    return parent === undefined ? undefined : new ControlGroup(path.join(parent, name));
  }

  /** The group of a directory, made or not, of any version of control groups; ended at once only in version 2. Absolute path. */
  static at(directory: string): ControlGroup {
    return new ControlGroup(directory);
  }

  /** A group in this one, not made yet; it ends with this one. */
  inner(name: string): ControlGroup {
    return new ControlGroup(path.join(this.directory, name));
  }

  /** Makes the group. Returns whether the system let it, and can end it at once (Linux 5.14). */
  async make(): Promise<boolean> {
    try {
      await mkdir(this.directory);
      await access(path.join(this.directory, "cgroup.kill"), constants.W_OK);
      return true;
    } catch {
      await rmdir(this.directory).catch(() => {});
      return false;
    }
  }

  /** Makes the group, although it may not be possible to end it at once. Returns whether the system let it. */
  async makeAny(): Promise<boolean> {
    return mkdir(this.directory).then(
      () => true,
      () => false,
    );
  }

  /**
   * The command that starts a program inside the group. A shell goes in and becomes the program: if this process moved it
   * there, it could have started others before. What cannot enter runs all the same.
   *
   * @param env - the program's variables; those that some shells add are taken away unless they are among them.
   */
  wrap(command: readonly [string, ...string[]], env: Readonly<Record<string, string>>): readonly [string, ...string[]] {
    const added = ["PWD", "OLDPWD", "SHLVL"].filter((name) => env[name] === undefined);
    const enter = `{ echo 0 > "$0"; } 2> /dev/null; unset _ ${added.join(" ")}; exec "$@"`;
    return ["/bin/sh", "-c", enter, path.join(this.directory, "cgroup.procs"), ...command];
  }

  /** Ends all processes of the group, and waits until they are dead. */
  async kill(): Promise<void> {
    try {
      await writeFile(path.join(this.directory, "cgroup.kill"), "1");
      const giveUp = performance.now() + deadlineMs;
      for (let wait = 1; performance.now() < giveUp; wait = Math.min(wait * 2, 50)) {
        if (!/^populated 1$/m.test(await readFile(path.join(this.directory, "cgroup.events"), "utf8"))) return;
        await sleep(wait);
      }
    } catch {
      // It is gone.
    }
  }

  /** Removes the group and those in it, if they are empty. Returns whether it is gone. */
  async remove(): Promise<boolean> {
    await rmdir(this.directory).catch(async () => this.#removeInner());
    return access(this.directory).then(
      () => false,
      () => true,
    );
  }

  async #removeInner(): Promise<void> {
    try {
      await using directory = await PinnedDirectory.open(this.directory);
      await walkTree(directory, {
        enter: directoriesIn,
        open: (each, name) => each.child(name).catch(() => undefined),
        leave: (each, name) => rmdir(each.entry(name)).catch(() => {}),
        deadline: performance.now() + deadlineMs,
      });
      await rmdir(this.directory);
    } catch {
      // It is gone, or a process lives in it.
    }
  }
}

async function directoriesIn(directory: PinnedDirectory): Promise<string[]> {
  const names: string[] = [];
  for await (const entry of await opendir(directory.entry("."))) if (entry.isDirectory()) names.push(entry.name);
  return names;
}

/** The directory of this process's own group, if groups may be made in it and processes moved to them. */
async function ownGroup(): Promise<string | undefined> {
  if (process.platform !== "linux") return undefined;
  try {
    const [, own] = /^0::(\/.*)$/m.exec(await readFile("/proc/self/cgroup", "utf8")) ?? [];
    const [, root, mount] =
      /^\d+ \d+ \S+ (\S+) (\S+) .* - cgroup2 /m.exec(await readFile("/proc/self/mountinfo", "utf8")) ?? [];
    if (own === undefined || root === undefined || mount === undefined) return undefined;
    const directory = path.join(mount, path.posix.relative(root, own));
    await access(directory, constants.W_OK);
    await access(path.join(directory, "cgroup.procs"), constants.W_OK);
    return directory;
  } catch {
    return undefined;
  }
}
