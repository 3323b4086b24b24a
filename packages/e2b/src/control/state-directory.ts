import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import path from "node:path";
import { BackendUnavailableError, parseJson, type SessionHandle } from "@fenced/core";
import { memoryDirectory, type SessionDirectory, type SessionNote } from "@fenced/pool";
import * as z from "zod";
import { type SandboxRecord, sandboxRecordSchema } from "./known-sandbox.ts";
import { type Snapshot, snapshotSchema } from "./snapshots.ts";

/** What is kept, each kind in a directory of its own, with a file for each id. */
const kinds = ["sandboxes", "snapshots", "sessions"] as const;
type Kind = (typeof kinds)[number];

const noteSchema: z.ZodType<SessionNote> = z.object({
  handle: z.custom<SessionHandle>((value) => typeof value === "object" && value !== null).optional(),
  checkpoint: z.string().optional(),
  lost: z.string().optional(),
});

/** What an earlier server has left. */
export interface LeftState {
  readonly sandboxes: readonly SandboxRecord[];
  readonly snapshots: readonly Snapshot[];
  /** Ids of sandboxes that have a place where code runs. */
  readonly places: ReadonlySet<string>;
  /** Files that could not be read are not missing: what they need must stay. */
  readonly isComplete: boolean;
}

/** The directory where a server writes down its sandboxes, so that the next one finds them. */
export class StateDirectory {
  /** Knows how to connect to the sandboxes' places; their holds end with this process. */
  readonly sessions: SessionDirectory;
  readonly #path: string;
  readonly #onError: (error: unknown) => void;
  readonly #writing = new Map<string, Promise<void>>();

  /** @throws BackendUnavailableError if another server uses it, or it cannot be written. */
  constructor(directory: string, onError: (error: unknown) => void) {
    this.#path = path.resolve(directory);
    this.#onError = onError;
    try {
      for (const kind of kinds) mkdirSync(path.join(this.#path, kind), { recursive: true, mode: 0o700 });
      this.#lock();
    } catch (cause) {
      if (cause instanceof BackendUnavailableError) throw cause;
      throw new BackendUnavailableError(`The state directory ${this.#path} cannot be used`, {
        remedy: "Choose one that this user can write, with `stateDirectory` (`--state`).",
        cause,
      });
    }
    this.sessions = this.#sessionDirectory();
  }

  /** Reads everything that an earlier server has left. */
  load(): LeftState {
    const problems: unknown[] = [];
    const read = <T>(kind: Kind, schema: z.ZodType<T>): T[] => {
      const { values, errors } = this.#read(kind, schema);
      problems.push(...errors);
      return [...values.values()];
    };
    const sandboxes = read("sandboxes", sandboxRecordSchema);
    const snapshots = read("snapshots", snapshotSchema);
    for (const problem of problems) this.#onError(problem);
    const places = new Set(this.#read("sessions", noteSchema).values.keys());
    return { sandboxes, snapshots, places, isComplete: problems.length === 0 };
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

  /** Lets another server use it. */
  close(): void {
    rmSync(this.#lockFile, { force: true });
  }

  get #lockFile(): string {
    return path.join(this.#path, "server");
  }

  /** One server at a time, as far as it can be known: two would take each other's sandboxes away. */
  #lock(): void {
    const own = processName(process.pid);
    const holder = this.#tryLock(own);
    if (holder === undefined) return;
    const pid = Number(/^\d+/.exec(holder)?.[0] ?? 0);
    if (pid !== process.pid && pid > 0 && processName(pid) === holder) {
      throw new BackendUnavailableError(`The state directory ${this.#path} is used by process ${pid}`, {
        remedy: "Stop that server, or choose another directory.",
      });
    }
    rmSync(this.#lockFile, { force: true });
    if (this.#tryLock(own) === undefined) return;
    throw new BackendUnavailableError(`Another server has just begun to use the state directory ${this.#path}`, {
      remedy: "Start one server for each directory.",
    });
  }

  /** @returns who has it, if somebody has. */
  #tryLock(own: string): string | undefined {
    try {
      writeFileSync(this.#lockFile, own, { flag: "wx", mode: 0o600 });
      return undefined;
    } catch (error) {
      if (!isCode(error, "EEXIST")) throw error;
      return readFileSync(this.#lockFile, "utf8");
    }
  }

  #read<T>(kind: Kind, schema: z.ZodType<T>): { values: Map<string, T>; errors: unknown[] } {
    const values = new Map<string, T>();
    const errors: unknown[] = [];
    for (const name of readdirSync(path.join(this.#path, kind))) {
      const [, id] = /^(\w{1,100})\.json$/.exec(name) ?? [];
      if (id === undefined) continue;
      try {
        values.set(id, schema.parse(parseJson(readFileSync(path.join(this.#path, kind, name)))));
      } catch (error) {
        errors.push(error);
      }
    }
    return { values, errors };
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
    const { values: left, errors } = this.#read("sessions", noteSchema);
    for (const error of errors) this.#onError(error);
    return {
      acquire: async (key, options) => {
        const answer = await inner.acquire(key, options);
        const note = left.get(key);
        if (!answer.isHeld || !note) return answer;
        left.delete(key);
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
    return `${pid} ${started} ${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}`;
  } catch {
    return String(pid);
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
