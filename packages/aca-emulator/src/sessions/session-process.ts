import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { nodeWorker } from "../driver/node-worker.ts";
import { sessionProgram } from "../driver/session-program.ts";
import type { PoolType } from "../emulator-options.ts";
import type { Fence } from "./fence.ts";

/** What a session's process says about a piece of code that it ran. */
export interface RunReport {
  /** `Succeeded`, `Failed`; on a Shell pool the exit code. */
  readonly status: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly result?: unknown;
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
  readonly #ended: Promise<void>;
  readonly #waiting = new Map<string, (report: RunReport) => void>();
  #problem = "";
  /** What everything gets that is to run after the process has ended, in whatever way. */
  #over: RunReport | undefined;

  constructor(spec: SessionProcessSpec) {
    const config = {
      kind: { PythonLTS: "python", NodeLTS: "node", Shell: "shell" }[spec.poolType],
      rewrite: spec.fence.kind === "none" ? spec.directory : null,
      command: [process.execPath, "-e", nodeWorker],
    };
    const command = [spec.python, "-c", sessionProgram, JSON.stringify(config)];
    const [program, ...words] = spec.fence.wrap(command, spec.directory);
    // A group of its own: an interrupt in the terminal is for the emulator, which then ends its sessions.
    this.#process = spawn(program, words, { env: sessionEnvironment(), cwd: "/", detached: true });
    this.#ended = this.#follow();
  }

  /** Runs code; output beyond `limit` bytes a stream is dropped. Call it again when it has answered. */
  async run(id: string, code: string, limit: number): Promise<RunReport> {
    // Nobody would answer: this may have waited for its turn behind what ended with the process.
    if (this.#over) return this.#over;
    const report = new Promise<RunReport>((resolve) => {
      this.#waiting.set(id, resolve);
    });
    this.#send({ do: "run", id, code, limit });
    return report;
  }

  /** Interrupts what runs, and kills the worker if that does not help. */
  interrupt(): void {
    this.#send({ do: "interrupt" });
  }

  /** A fresh worker. Nothing may be running. */
  reset(): void {
    this.#send({ do: "reset" });
  }

  /** Kills the session and everything that it started; resolves when it is all dead. */
  async end(): Promise<void> {
    this.#process.stdin.end();
    const patience = setTimeout(() => this.#process.kill("SIGKILL"), 15_000);
    await this.#ended;
    clearTimeout(patience);
  }

  async #follow(): Promise<void> {
    const { stdout, stderr, stdin } = this.#process;
    stdin.on("error", () => {});
    stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#problem = `${this.#problem}${text}`.slice(-2000);
    });
    createInterface({ input: stdout }).on("line", (line) => {
      const report: unknown = JSON.parse(line);
      if (isReport(report)) this.#answer(report.id, report);
    });
    await once(this.#process, "close").catch((error: unknown) => {
      this.#problem = String(error);
    });
    const error = { code: "SessionEnded", message: `The session's process ended. ${this.#problem}`.trim() };
    this.#over = { status: "Failed", stdout: "", stderr: "", error };
    for (const id of this.#waiting.keys()) this.#answer(id, this.#over);
  }

  #answer(id: string, report: RunReport): void {
    this.#waiting.get(id)?.(report);
    this.#waiting.delete(id);
  }

  #send(command: object): void {
    this.#process.stdin.write(`${JSON.stringify(command)}\n`);
  }
}

/** The host's variables are not for the code: it sees what a fresh container would have. */
function sessionEnvironment(): NodeJS.ProcessEnv {
  return {
    PATH: process.env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin",
    HOME: "/tmp",
    LANG: "C.UTF-8",
    MPLBACKEND: "Agg",
    PYTHONDONTWRITEBYTECODE: "1",
  };
}

/** The driver is this package's own, so its word is taken for the rest. */
function isReport(value: unknown): value is RunReport & { readonly id: string } {
  return typeof value === "object" && value !== null && "id" in value && "status" in value;
}
