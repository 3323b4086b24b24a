import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { GrowingBytes } from "../growing-bytes.ts";
import { hasFewValues } from "../http/api-request.ts";
import type { Fence } from "./fence.ts";
import { killMarked } from "./kill-marked.ts";

const supervisor: string = readFileSync(new URL("./supervisor.py", import.meta.url), "utf8");
const pythonWorker: string = readFileSync(new URL("./python-worker.py", import.meta.url), "utf8");
const cellMagics: string = readFileSync(new URL("./cell-magics.py", import.meta.url), "utf8");
const nodeWorker: string = readFileSync(new URL("./node-worker.mjs", import.meta.url), "utf8");

/** What a pool's sessions run. */
export type PoolType = "PythonLTS" | "NodeLTS" | "Shell";

/** The longest line from the process, in bytes: output, a value and their escapes. Only code in its place sends more. */
const longestLine = 192 * 1024 * 1024;

/** The largest number of values in a line; with more, the process is ended, too. */
const mostValues = 1_000_000;

/** What a session's process reports about a piece of code that it ran. */
export interface RunReport {
  /** `Succeeded` or `Failed`; on a Shell pool, the exit code. */
  readonly status: string;
  readonly stdout: string;
  readonly stderr: string;
  /** The value of the last expression, as JSON; absent if the code did not run. */
  readonly result?: string;
  readonly error?: { readonly code: string; readonly message: string };
}

/** How to start a session's process. */
export interface SessionProcessSpec {
  readonly poolType: PoolType;
  readonly python: string;
  readonly fence: Fence;
  /** The session's `/mnt/data`, a directory of the host. */
  readonly directory: string;
}

/** The supervisor of one session, and the worker that it keeps. */
export class SessionProcess {
  readonly #process: ChildProcessWithoutNullStreams;
  /** A variable of everything that a session without namespaces starts. With them, the kernel ends all of it. */
  readonly #mark: string | undefined;
  readonly #ended: Promise<void>;
  readonly #waiting = new Map<string, (report: RunReport) => void>();
  #problem = "";
  /** The report for any code that comes after the process has ended. */
  #over: RunReport | undefined;

  constructor(spec: SessionProcessSpec) {
    const config = {
      kind: { PythonLTS: "python", NodeLTS: "node", Shell: "shell" }[spec.poolType],
      rewrite: spec.fence.kind === "none" ? spec.directory : null,
      command: [process.execPath, "--input-type=module", "-e", nodeWorker],
      programs: { worker: pythonWorker, magics: cellMagics },
    };
    const command = [spec.python, "-c", supervisor, JSON.stringify(config)];
    const [program, ...words] = spec.fence.wrap(command, spec.directory);
    const id = randomUUID();
    if (spec.fence.kind === "none") this.#mark = `FENCED_SESSION=${id}`;
    const env = { ...sessionEnvironment(), ...(this.#mark !== undefined && { FENCED_SESSION: id }) };
    // It gets its own group: an interrupt in the terminal is for the emulator, which then ends its sessions.
    this.#process = spawn(program, words, { env, cwd: "/", detached: true });
    this.#ended = this.#follow();
  }

  /** Runs code, one piece at a time; drops output beyond `limit` bytes per stream. */
  async run(id: string, code: string, limit: number): Promise<RunReport> {
    // This code may have waited behind other code that ended with the process, so no answer would come.
    if (this.#over) return this.#over;
    const report = new Promise<RunReport>((resolve) => {
      this.#waiting.set(id, resolve);
    });
    this.#send({ do: "run", id, code, limit });
    return report;
  }

  /** Interrupts the running code, and kills the worker if that does not help. */
  interrupt(): void {
    this.#send({ do: "interrupt" });
  }

  /** Starts a fresh worker. No code may be running. */
  reset(): void {
    this.#send({ do: "reset" });
  }

  /** Kills the session and everything that it started; resolves when all of it is dead. */
  async end(): Promise<void> {
    this.#process.stdin.end();
    const patience = setTimeout(() => this.kill(), 15_000);
    await this.#ended;
    clearTimeout(patience);
  }

  /** Kills the process itself when it no longer answers. */
  kill(): void {
    this.#process.kill("SIGKILL");
  }

  async #follow(): Promise<void> {
    const { stdout, stderr, stdin } = this.#process;
    stdin.on("error", () => {});
    stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#problem = `${this.#problem}${text}`.slice(-2000);
    });
    stdout.on("error", () => {}).on("data", this.#lineReader());
    // Does not wait for its pipes to close, because code can hold them open.
    await once(this.#process, "exit").catch((error: unknown) => {
      this.#problem = String(error);
    });
    // Code can stop or kill its supervisor, which then ends nothing.
    if (this.#mark !== undefined) await killMarked(this.#mark);
    // What it said last may not have arrived yet.
    if (this.#problem === "") await Promise.race([once(this.#process, "close"), sleep(500)]).catch(() => {});
    for (const pipe of this.#process.stdio) pipe?.destroy();
    const error = { code: "SessionEnded", message: `The session's process ended. ${this.#problem}`.trim() };
    this.#over = { status: "Failed", stdout: "", stderr: "", error };
    for (const id of this.#waiting.keys()) this.#answer(id, this.#over);
  }

  /** Splits the data into lines, each a report. Without a fence, code can write there as well: other lines are dropped. */
  #lineReader(): (piece: Buffer) => void {
    const bytes = new GrowingBytes();
    return (piece) => {
      let rest = piece;
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        bytes.add(rest.subarray(0, end));
        this.#read(bytes.take().toString("utf8"));
        rest = rest.subarray(end + 1);
      }
      bytes.add(rest);
      if (bytes.length > longestLine) this.kill();
    };
  }

  #read(line: string): void {
    try {
      if (!hasFewValues(line, mostValues)) {
        this.kill();
        return;
      }
      const report: unknown = JSON.parse(line);
      if (isReport(report)) this.#answer(report.id, report);
    } catch {
      // The line is not from the supervisor.
    }
  }

  #answer(id: string, report: RunReport): void {
    this.#waiting.get(id)?.(report);
    this.#waiting.delete(id);
  }

  #send(command: object): void {
    this.#process.stdin.write(`${JSON.stringify(command)}\n`);
  }
}

/** Hides the host's variables from the code, which sees the variables of a fresh container. */
function sessionEnvironment(): NodeJS.ProcessEnv {
  return {
    PATH: process.env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin",
    HOME: "/tmp",
    LANG: "C.UTF-8",
    MPLBACKEND: "Agg",
    PYTHONDONTWRITEBYTECODE: "1",
  };
}

function isReport(value: unknown): value is RunReport & { readonly id: string } {
  const names = ["id", "status", "stdout", "stderr"];
  return (
    typeof value === "object" && value !== null && names.every((name) => typeof Reflect.get(value, name) === "string")
  );
}
