import { readFileSync } from "node:fs";
import { access, constants, mkdir, opendir, readFile, rmdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PinnedDirectory } from "../workspace/pinned-directory.ts";
import { walkTree } from "../workspace/walk-tree.ts";

/** Time limit for the system to end and remove a group in milliseconds. */
const deadlineMs = 10_000;

/**
 * A Linux control group (version 2) for processes. It contains everything that they start, even processes that keep
 * forking, drop their environment and start new sessions, and can end all of them at once. Available only where this
 * process may create groups below its own: as root outside containers, or where its group was delegated to it, as in a
 * systemd user session. A program that runs as root can leave it.
 */
export class ControlGroup {
  /** Absolute path of the group's directory. */
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  /** Plans a group with this name without creating it; `undefined` if this process cannot create groups. */
  static async plan(name: string): Promise<ControlGroup | undefined> {
    const parent = await ownGroup();
    return parent === undefined ? undefined : new ControlGroup(path.join(parent, name));
  }

  /**
   * The group at an absolute path, existing or not, of any control group version; only version 2 can end it at once.
   */
  static at(directory: string): ControlGroup {
    return new ControlGroup(directory);
  }

  /** Plans a group inside this one without creating it; it ends with this one. */
  inner(name: string): ControlGroup {
    return new ControlGroup(path.join(this.directory, name));
  }

  /** Creates the group. Returns whether the system allowed it and can end the group at once (Linux 5.14). */
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

  /** Creates the group even if it may not be possible to end it at once. Returns whether the system allowed that. */
  async makeAny(): Promise<boolean> {
    return mkdir(this.directory).then(
      () => true,
      () => false,
    );
  }

  /**
   * The command that starts a program inside the group. A shell enters the group and then becomes the program; if this
   * process moved the program there instead, it might already have started others. If the shell cannot enter, the
   * program runs anyway.
   *
   * @param env - the program's variables; variables that some shells add are removed unless they are among them.
   */
  wrap(command: readonly [string, ...string[]], env: Readonly<Record<string, string>>): readonly [string, ...string[]] {
    return inGroups([this], command, env);
  }

  /** Ends all processes of the group, and waits until they are dead. */
  async kill(): Promise<void> {
    try {
      const giveUp = performance.now() + deadlineMs;
      for (let wait = 1; performance.now() < giveUp; wait = Math.min(wait * 2, 50)) {
        // Again each time, because a process that was on its way into the group may have entered it meanwhile.
        await writeFile(path.join(this.directory, "cgroup.kill"), "1");
        if (!/^populated 1$/m.test(await readFile(path.join(this.directory, "cgroup.events"), "utf8"))) return;
        await sleep(wait);
      }
    } catch {
      // It is already gone.
    }
  }

  /**
   * Processor time that everything in the group has used, in milliseconds; `undefined` if that is not known, or nothing has
   * entered it.
   */
  processorMs(): number | undefined {
    try {
      const [, used = ""] =
        /^usage_usec (\d+)$/m.exec(readFileSync(path.join(this.directory, "cpu.stat"), "utf8")) ?? [];
      return Number(used) > 0 ? Number(used) / 1000 : undefined;
    } catch {
      return undefined;
    }
  }

  /** Removes the group and those inside it, if they are empty. Returns whether it is gone. */
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
      // It is already gone, or a process is in it.
    }
  }
}

/**
 * The command that starts a program inside several groups, of different hierarchies; see `ControlGroup.wrap`.
 *
 * Version 1 has a file `tasks`, by which one thread enters a group without making all processes of the machine that start
 * or end others wait, which takes many milliseconds.
 */
export function inGroups(
  groups: readonly ControlGroup[],
  command: readonly [string, ...string[]],
  env: Readonly<Record<string, string>>,
): readonly [string, ...string[]] {
  if (groups.length === 0) return command;
  const added = ["PWD", "OLDPWD", "SHLVL"].filter((name) => env[name] === undefined);
  const enter = `left=$0; while [ "$left" -gt 0 ]; do { echo 0 > "$1/tasks" || echo 0 > "$1/cgroup.procs"; } 2> /dev/null; shift; left=$((left - 1)); done; unset _ ${added.join(" ")}; exec "$@"`;
  const directories = groups.map(({ directory }) => directory);
  return ["/bin/sh", "-c", enter, String(groups.length), ...directories, ...command];
}

async function directoriesIn(directory: PinnedDirectory): Promise<string[]> {
  const names: string[] = [];
  for await (const entry of await opendir(directory.entry("."))) if (entry.isDirectory()) names.push(entry.name);
  return names;
}

/** The directory of this process's own group, if this process may create groups there and move processes into them. */
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
