import { readFile, writeFile } from "node:fs/promises";
import { release } from "node:os";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import { ControlGroup } from "@fenced/executor-kit";

/** A sandbox's limits; `undefined` for the default, if the system can enforce it. */
export interface WantedLimits {
  readonly memoryBytes: number | undefined;
  readonly pidsLimit: number | undefined;
}

/** How a sandbox's limits are enforced. */
export interface SandboxLimits {
  /** Memory limit in bytes, for messages. */
  readonly memoryBytes: number;
  /** Maximum bytes of files in `/tmp`, and separately in `/dev/shm`. */
  readonly temporaryBytes: number;
  /** Limits for each process, for limits that no control group enforces. */
  readonly each: { readonly processes?: number; readonly data?: number };
  /** Existing control groups to start the sandbox in. */
  readonly groups: readonly ControlGroup[];
  /**
   * Files in which the kernel counts the processes that it killed for lack of memory, and their paths in the sandbox.
   */
  readonly events: readonly { readonly source: string; readonly place: string }[];
}

/** The memory limit of a sandbox, if none is given. */
export const defaultMemoryBytes = 1_073_741_824;
const defaultPidsLimit = 512;

type Controller = "memory" | "pids";

/** One of this process's control groups, and the controllers available to its child groups. */
interface GroupHome {
  readonly directory: string;
  readonly version: 1 | 2;
  readonly controllers: readonly Controller[];
}

/** The control groups of a sandbox; planned before they are created, so that a leash can be told first. */
export class LimitGroups {
  readonly #homes: readonly GroupHome[];
  readonly #name: string;

  private constructor(homes: readonly GroupHome[], name: string) {
    this.#homes = homes;
    this.#name = name;
  }

  /** @param name - the groups' name, globally unique. */
  static async plan(name: string): Promise<LimitGroups> {
    return new LimitGroups(await findHomes(), name);
  }

  /** All groups, created or not. */
  get all(): ControlGroup[] {
    return this.#homes.map(({ directory }) => ControlGroup.at(path.join(directory, this.#name)));
  }

  /**
   * Creates the groups that the system lets this process create.
   *
   * @throws BackendUnavailableError if a limit that the user gave cannot be enforced.
   */
  async make(wanted: WantedLimits): Promise<SandboxLimits> {
    const memoryBytes = wanted.memoryBytes ?? defaultMemoryBytes;
    const pids = wanted.pidsLimit ?? defaultPidsLimit;
    const held = new Set<Controller>();
    const groups: ControlGroup[] = [];
    const events: SandboxLimits["events"][number][] = [];
    const made = this.#homes.map(async (home) => {
      const group = ControlGroup.at(path.join(home.directory, this.#name));
      const set = (await makeGroup(group, home)) ? await setLimits(group, home, { memoryBytes, pids }) : undefined;
      if (set?.length === 0) await group.remove();
      return { group, home, set: set ?? [] };
    });
    for (const { group, home, set } of await Promise.all(made)) {
      if (set.length === 0) continue;
      groups.push(group);
      for (const each of set) held.add(each);
      if (set.includes("memory")) events.push(...memoryFiles(group, home));
    }
    const byProcess = !held.has("pids") && limitsProcessesPerSandbox();
    if (wanted.pidsLimit !== undefined && !held.has("pids") && !byProcess) throw notHeld();
    if (wanted.memoryBytes !== undefined && !held.has("memory")) warnOfMemory();
    return {
      memoryBytes,
      temporaryBytes: Math.floor(memoryBytes / 2),
      each: { ...(byProcess ? { processes: pids } : {}), ...(held.has("memory") ? {} : { data: memoryBytes }) },
      groups,
      events,
    };
  }

  /** Removes the groups; everything that ran in them must have ended. */
  async remove(): Promise<void> {
    await Promise.all(this.all.map(async (group) => group.remove()));
  }
}

/**
 * True if the kernel counts a sandbox's processes separately (Linux 5.14), so that the limit set for each process
 * applies to the whole sandbox. The kernel does not limit the host's root.
 */
function limitsProcessesPerSandbox(): boolean {
  const [major = 0, minor = 0] = release().split(".").map(Number);
  return process.getuid?.() !== 0 && (major > 5 || (major === 5 && minor >= 14));
}

async function makeGroup(group: ControlGroup, { directory, version, controllers }: GroupHome): Promise<boolean> {
  if (version === 2) {
    // Fails if the group itself contains processes; its child groups then have no controllers unless they are already
    // enabled.
    const words = controllers.map((each) => `+${each}`).join(" ");
    await writeFile(path.join(directory, "cgroup.subtree_control"), words).catch(() => {});
  }
  return group.makeAny();
}

/** Sets the group's limits and returns those that it now enforces. */
async function setLimits(
  group: ControlGroup,
  home: GroupHome,
  limits: { readonly memoryBytes: number; readonly pids: number },
): Promise<Controller[]> {
  const done = await Promise.all(home.controllers.map(async (each) => setLimit(each, group, home, limits)));
  return home.controllers.filter((_, index) => done[index] === true);
}

async function setLimit(
  controller: Controller,
  { directory }: ControlGroup,
  { version }: GroupHome,
  { memoryBytes, pids }: { readonly memoryBytes: number; readonly pids: number },
): Promise<boolean> {
  const set = async (file: string, value: number): Promise<boolean> =>
    writeFile(path.join(directory, file), String(value), { flag: "r+" }).then(
      () => true,
      () => false,
    );
  if (controller === "pids") return set("pids.max", pids);
  const done = await set(version === 2 ? "memory.max" : "memory.limit_in_bytes", memoryBytes);
  // Swap counts as memory; a kernel without swap accounting has no such file.
  await (version === 2 ? set("memory.swap.max", 0) : set("memory.memsw.limit_in_bytes", memoryBytes));
  return done;
}

/** What the supervisor reads: which processes the kernel has killed, and what the sandbox uses. */
function memoryFiles({ directory }: ControlGroup, { version }: GroupHome): readonly SandboxLimits["events"][number][] {
  const [names, place] =
    version === 2
      ? [["memory.events", "memory.current", "memory.max", "memory.stat", "cpu.stat"], ""]
      : [["memory.oom_control", "memory.usage_in_bytes", "memory.limit_in_bytes", "memory.stat"], "memory/"];
  return names.map((name) => ({ source: path.join(directory, name), place: `/sys/fs/cgroup/${place}${name}` }));
}

/** This process's own groups that have controllers for memory and processes. */
async function findHomes(): Promise<GroupHome[]> {
  const [own, mounts] = await Promise.all(
    ["/proc/self/cgroup", "/proc/self/mountinfo"].map(async (file) => readFile(file, "utf8").catch(() => "")),
  );
  const homes = (own ?? "").split("\n").flatMap((line): GroupHome[] => {
    const [, number, names = "", place = ""] = /^(\d+):([^:]*):(\/.*)$/.exec(line) ?? [];
    const version = number === "0" && names === "" ? 2 : 1;
    const controllers = (["memory", "pids"] as const).filter(
      (each) => version === 2 || names.split(",").includes(each),
    );
    const directory = mountOf(mounts ?? "", version === 2 ? undefined : names, place);
    return number === undefined || directory === undefined ? [] : [{ directory, version, controllers }];
  });
  // Where both versions are mounted, version 1 has the controllers.
  const first = homes.filter(({ version, controllers }) => version === 1 && controllers.length > 0);
  return first.length > 0 ? first : homes.filter(({ version }) => version === 2);
}

/** The path of a control group in the file system. */
function mountOf(mounts: string, controllers: string | undefined, place: string): string | undefined {
  for (const line of mounts.split("\n")) {
    const [, root, mount, type, options = ""] = /^\d+ \d+ \S+ (\S+) (\S+) .* - (cgroup2?) \S+ (\S+)/.exec(line) ?? [];
    if (root === undefined || mount === undefined || type !== (controllers === undefined ? "cgroup2" : "cgroup")) {
      continue;
    }
    const all = options.split(",");
    if (controllers?.split(",").every((each) => all.includes(each)) === false) continue;
    return path.join(mount, path.posix.relative(root, place));
  }
  return undefined;
}

let warned = false;

/** Warns once per process that `memoryBytes` is not what it says. */
function warnOfMemory(): void {
  if (warned) return;
  warned = true;
  process.emitWarning("`memoryBytes` limits only the data of each process here, not the whole sandbox.", {
    code: "FENCED_MEMORY",
    detail:
      "What processes share (memfd_create, shared mappings) is not limited. Let this program create control groups with the controller `memory`, or use a container, with @fenced/executor-docker.",
  });
}

function notHeld(): BackendUnavailableError {
  return new BackendUnavailableError(
    "`pidsLimit` cannot be enforced here: this program runs as root, or the kernel is older than 5.14",
    {
      remedy:
        "Run as an ordinary user, or let this program create control groups with the controller `pids`, as root outside a container. You can also leave the option out; then there is no limit.",
    },
  );
}
