import { readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import path from "node:path";
import { BackendUnavailableError, parseJson, type SessionHandle } from "@fenced/core";
import { makeDirectoriesSync } from "@fenced/core/runtime";
import { memoryDirectory, type SessionDirectory, type SessionNote } from "@fenced/pool";
import * as z from "zod";
import { type SandboxRecord, sandboxRecordSchema } from "./known-sandbox.ts";
import { type Snapshot, snapshotSchema } from "./snapshots.ts";

/** What is kept, each kind in a directory of its own, with a file for each id. */
const kinds = ["sandboxes", "snapshots", "sessions"] as const;
type Kind = (typeof kinds)[number];
/** How the names of servers' own files begin. */
const lockPrefix = "server-";

const noteSchema: z.ZodType<SessionNote> = z.object({
  handle: z.custom<SessionHandle>((value) => typeof value === "object" && value !== null).optional(),
  checkpoint: z.string().optional(),
  lost: z.string().optional(),
});

/** What an earlier server has left. */
export interface LeftState {
  readonly sandboxes: readonly SandboxRecord[];
  readonly snapshots: readonly Snapshot[];
  /** Ids of sandboxes that have a place where code runs, but do not run by their records. */
  readonly abandoned: readonly string[];
  /** Records that could not be read are not missing: the checkpoints that they name must stay. */
  readonly isComplete: boolean;
}

/** The files of one kind, by their ids. */
interface Files<T> {
  readonly values: Map<string, T>;
  readonly unreadable: ReadonlySet<string>;
}

/** The locks that this process has: another one may have died that had the same number. */
const ownLocks = new Set<string>();

/** The directory where a server writes down its sandboxes, so that the next one finds them. */
export class StateDirectory {
  /** Knows how to connect to the sandboxes' places; their holds end with this process. */
  readonly sessions: SessionDirectory;
  readonly #path: string;
  readonly #onError: (error: unknown) => void;
  readonly #writing = new Map<string, Promise<void>>();
  #lockFile = "";
  /** What an earlier server noted about places, until this one has them. */
  readonly #notes: Map<string, SessionNote>;

  /** @throws BackendUnavailableError if another server uses it, or it cannot be written. */
  constructor(directory: string, onError: (error: unknown) => void) {
    this.#path = path.resolve(directory);
    this.#onError = onError;
    try {
      for (const kind of kinds) makeDirectoriesSync(path.join(this.#path, kind), { mode: 0o700 });
      this.#lock();
    } catch (cause) {
      if (cause instanceof BackendUnavailableError) throw cause;
      throw new BackendUnavailableError(`The state directory ${this.#path} cannot be used`, {
        remedy: "Choose one that this user can write, with `stateDirectory` (`--state`).",
        cause,
      });
    }
    this.#notes = this.#read("sessions", noteSchema).values;
    this.sessions = this.#sessionDirectory();
  }

  /** Reads everything that an earlier server has left. */
  load(): LeftState {
    const sandboxes = this.#read("sandboxes", sandboxRecordSchema);
    const snapshots = this.#read("snapshots", snapshotSchema);
    const abandoned = [...this.#notes.keys()].filter(
      (id) => sandboxes.values.get(id)?.state !== "running" && !sandboxes.unreadable.has(id),
    );
    return {
      sandboxes: [...sandboxes.values.values()],
      snapshots: [...snapshots.values.values()],
      abandoned,
      isComplete: sandboxes.unreadable.size + snapshots.unreadable.size === 0,
    };
  }

  /** Writes a file, or replaces it as a whole. */
  write(kind: Kind, id: string, value: unknown): Promise<void> {
    return this.#inOrder(kind, id, async (file) => {
      const next = `${file}.new`;
      const handle = await open(next, "w", 0o600);
      try {
        await handle.writeFile(JSON.stringify(value));
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(next, file);
    });
  }

  remove(kind: Kind, id: string): Promise<void> {
    return this.#inOrder(kind, id, (file) => rm(file, { force: true }));
  }

  /** Lets another server use it, once everything is written. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#writing.values());
    this.#unlock();
  }

  /**
   * One server at a time, as far as it can be known: two would take each other's sandboxes away. Each has a file with its own
   * name, which it creates before it looks for others. Of two that start at the same time, at least one sees the other.
   */
  #lock(): void {
    const own = processName(process.pid);
    this.#lockFile = path.join(realpathSync(this.#path), `${lockPrefix}${own}`);
    if (ownLocks.has(this.#lockFile)) throw this.#isUsed(process.pid);
    ownLocks.add(this.#lockFile);
    try {
      writeFileSync(this.#lockFile, "", { mode: 0o600 });
      for (const name of readdirSync(this.#path)) {
        const holder = name.startsWith(lockPrefix) ? name.slice(lockPrefix.length) : own;
        if (holder === own) continue;
        const pid = Number(/^\d+/.exec(holder)?.[0] ?? 0);
        if (pid > 0 && processName(pid) === holder) throw this.#isUsed(pid);
        rmSync(path.join(this.#path, name), { force: true });
      }
    } catch (error) {
      this.#unlock();
      throw error;
    }
  }

  #unlock(): void {
    rmSync(this.#lockFile, { force: true });
    ownLocks.delete(this.#lockFile);
  }

  #isUsed(pid: number): BackendUnavailableError {
    return new BackendUnavailableError(`The state directory ${this.#path} is used by process ${pid}`, {
      remedy: "Stop that server, or choose another directory.",
    });
  }

  /** Reads the files of one kind, and reports those that cannot be read. */
  #read<T>(kind: Kind, schema: z.ZodType<T>): Files<T> {
    const values = new Map<string, T>();
    const unreadable = new Set<string>();
    for (const name of readdirSync(path.join(this.#path, kind))) {
      const file = path.join(this.#path, kind, name);
      // What a server was writing when it was killed.
      if (name.endsWith(".new")) rmSync(file, { force: true });
      const [, id] = /^(\w{1,100})\.json$/.exec(name) ?? [];
      if (id === undefined) continue;
      try {
        values.set(id, schema.parse(parseJson(readFileSync(file))));
      } catch (cause) {
        unreadable.add(id);
        this.#onError(
          new Error(`${file} cannot be read; what it names is kept, but not served. Repair or delete it`, { cause }),
        );
      }
    }
    return { values, unreadable };
  }

  /** Writes of one file follow each other. */
  async #inOrder(kind: Kind, id: string, action: (file: string) => Promise<void>): Promise<void> {
    const file = path.join(this.#path, kind, `${id}.json`);
    const before = this.#writing.get(file) ?? Promise.resolve();
    const writing = before.catch(() => {}).then(() => action(file));
    this.#writing.set(file, writing);
    try {
      await writing;
    } finally {
      if (this.#writing.get(file) === writing) this.#writing.delete(file);
    }
  }

  /** A directory in memory, whose notes are written down. */
  #sessionDirectory(): SessionDirectory {
    const inner = memoryDirectory();
    return {
      acquire: async (key, options) => {
        const answer = await inner.acquire(key, options);
        const note = this.#notes.get(key);
        if (!answer.isHeld || !note) return answer;
        this.#notes.delete(key);
        return { ...answer, note, isAbandoned: true };
      },
      renew: (holds, options) => inner.renew(holds, options),
      update: async (hold, note) => {
        const isHeld = await inner.update(hold, note);
        if (isHeld) await this.write("sessions", hold.key, note);
        return isHeld;
      },
      release: async (hold, note) => {
        if (note?.handle === undefined) await this.remove("sessions", hold.key);
        else await this.write("sessions", hold.key, note);
        return inner.release(hold, note);
      },
      listen: (owner, listener) => inner.listen(owner, listener),
    };
  }
}

/** Names a running process so that a later one with the same number is another one; where that is not known, only the number. */
function processName(pid: number): string {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (isCode(error, "ESRCH")) return "";
  }
  try {
    // The 22nd field is when it started; its name, the second, can contain anything.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const started = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
    return `${pid}-${started}-${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}`;
  } catch {
    return String(pid);
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
