import { spawn, type ChildProcess, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import type { Readable, Writable } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import { hostEnvironment } from "@fenced/executor-kit";
import { asLine, quoted } from "../remote/shell-words.ts";
import { bootCommand } from "../remote/supervisor-program.ts";
import type { SshExecutorOptions } from "../ssh-executor-options.ts";
import { readGreeting, type Greeting } from "./greeting.ts";
import { sshArguments, type SshCall } from "./ssh-arguments.ts";
import { connectionError, noSsh } from "./ssh-error.ts";

/** How long the host may take from the first word to its greeting, in milliseconds. */
const openMs = 60_000;
/** How long it may take to end processes. */
const answerMs = 20_000;
const closeMs = 10_000;
const beatMs = 10_000;
const stuckMs = 1000;
const longestGreeting = 262_144;

/** A run of `ssh` that uses a connection. */
export interface SshProcess {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  /** What ssh itself has said so far. */
  readonly said: () => string;
}

/** What a connection is made for. */
export interface ConnectionRequest {
  readonly options: SshExecutorOptions;
  /** A directory of this host for the connection alone, with a short path: a socket's may not be long. */
  readonly directory: string;
  /** A variable for all programs that are started on this host. */
  readonly mark: { readonly name: string; readonly value: string };
  readonly nonce: string;
  /** The supervisor's program. */
  readonly program: string;
}

/**
 * One connection to the remote host, and the supervisor at its other end, which ends everything there when the connection
 * does. All further programs run over the same connection.
 */
export class SshConnection {
  readonly #request: ConnectionRequest;
  readonly #master: SshProcess;
  readonly #ended: Promise<unknown>;
  readonly #answers = new Map<string, { resolve: () => void; reject: (error: Error) => void }[]>();
  readonly #children = new Set<ChildProcess>();
  #greeting: Greeting | undefined;
  #lost: Error | undefined;
  #text = "";
  #processes = 0;
  #heart: NodeJS.Timeout | undefined;

  private constructor(request: ConnectionRequest) {
    this.#request = request;
    this.#master = this.#spawn("master", bootCommand);
    const { child } = this.#master;
    this.#ended = once(child, "close").catch(() => {});
    child.on("error", (error) => this.#lose(noSsh(error)));
    child.on("close", () => this.#lose(this.#whyEnded()));
    child.stdin.on("error", () => {});
  }

  /**
   * Connects, and starts the supervisor.
   *
   * @throws BackendUnavailableError if the host cannot be reached or used.
   */
  static async open(request: ConnectionRequest, signal: AbortSignal): Promise<SshConnection> {
    const connection = new SshConnection(request);
    const cancel = (): void => connection.#lose(signal.reason instanceof Error ? signal.reason : new Error("stopped"));
    signal.addEventListener("abort", cancel, { once: true });
    if (signal.aborted) cancel();
    try {
      await connection.#greet();
      return connection;
    } catch (error) {
      await connection.close();
      throw error;
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }

  get greeting(): Greeting {
    if (this.#greeting) return this.#greeting;
    throw this.#lost ?? new Error("not connected");
  }

  /** Why nothing can be run any more; `undefined`: it can. */
  get lost(): Error | undefined {
    return this.#lost;
  }

  /** Starts the session's program on the remote host, which reads from its standard input what to do. */
  start(): SshProcess {
    if (this.#lost) throw this.#lost;
    // By the mark the supervisor finds it. It stands there from the start: what a shell exports later is not seen outside.
    const mark = `FENCED_SSH_CALL=${this.#request.mark.value}.`;
    const started = this.#spawn("session", `exec env ${mark} sh ${quoted(`${this.greeting.directory}/run`)}`);
    this.#children.add(started.child);
    started.child.on("close", () => this.#children.delete(started.child));
    return started;
  }

  /** Kills a block with all that it started. */
  async kill(number: number): Promise<void> {
    await this.#ask(`kill ${number}`);
  }

  /** Kills everything that blocks left running. */
  async reset(): Promise<void> {
    await this.#ask("reset");
  }

  /** Ends the connection; the supervisor ends and deletes what was made on the remote host. */
  async close(): Promise<void> {
    clearInterval(this.#heart);
    const { child } = this.#master;
    child.ref();
    child.stdin.end();
    const late = setTimeout(() => child.kill("SIGKILL"), this.#lost ? 0 : closeMs);
    await this.#ended;
    clearTimeout(late);
    for (const each of this.#children) each.kill("SIGKILL");
  }

  async #greet(): Promise<void> {
    const { child } = this.#master;
    const answered = new Promise<void>((resolve, reject) => {
      this.#answers.set("ready", [{ resolve, reject }]);
    });
    child.stdout.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    child.stdin.write(asLine(this.#request.program));
    const late = setTimeout(() => this.#lose(notAnswered("The host did not answer", openMs)), openMs);
    try {
      await answered;
    } finally {
      clearTimeout(late);
    }
    this.#heart = setInterval(() => child.stdin.write("beat\n"), beatMs);
    this.#heart.unref();
    // The connection alone does not keep Node alive.
    child.unref();
    for (const each of [child.stdin, child.stdout, child.stderr]) if (each instanceof net.Socket) each.unref();
  }

  #read(text: string): void {
    this.#text += text;
    if (this.#greeting) {
      this.#readAnswers();
      return;
    }
    const [, said] = this.#text.split(`\u001Efenced-${this.#request.nonce}:hello\n`);
    if (said !== undefined && /^(?:ready|problem .*)\n/m.test(said)) this.#welcome(said);
    else if (this.#text.length > longestGreeting) this.#lose(notAnswered("The host said something else", openMs));
  }

  #welcome(said: string): void {
    try {
      this.#greeting = readGreeting(said, this.#request.options.host);
      this.#text = "";
      this.#settle("ready");
    } catch (error) {
      this.#lose(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #readAnswers(): void {
    const lines = this.#text.split("\n");
    this.#text = (lines.pop() ?? "").slice(-1000);
    for (const line of lines) if (line.startsWith("done ")) this.#settle(line.slice("done ".length));
  }

  #settle(word: string): void {
    for (const { resolve } of this.#answers.get(word) ?? []) resolve();
    this.#answers.delete(word);
  }

  async #ask(words: string): Promise<void> {
    if (this.#lost) throw this.#lost;
    const answered = new Promise<void>((resolve, reject) => {
      this.#answers.set(words, [...(this.#answers.get(words) ?? []), { resolve, reject }]);
    });
    this.#master.child.stdin.write(`${words}\n`);
    const late = setTimeout(() => this.#lose(notAnswered("Processes on the host did not end", answerMs)), answerMs);
    try {
      await answered;
    } finally {
      clearTimeout(late);
    }
  }

  #lose(error: Error): void {
    if (this.#lost) return;
    this.#lost = error;
    clearInterval(this.#heart);
    this.#master.child.kill("SIGKILL");
    for (const waiting of this.#answers.values()) for (const { reject } of waiting) reject(error);
    this.#answers.clear();
    // Programs on a connection that is gone end by themselves, unless it is stuck.
    setTimeout(() => {
      for (const child of this.#children) child.kill("SIGKILL");
    }, stuckMs).unref();
  }

  #whyEnded(): Error {
    const { host } = this.#request.options;
    const problem = this.#greeting ? `The connection to ${host} broke` : `The host ${host} cannot be reached`;
    const noise = this.#greeting ? "" : this.#text;
    return connectionError(problem, host, `${noise}\n${this.#master.said()}`);
  }

  #spawn(role: SshCall["role"], command: string): SshProcess {
    const { options, directory, mark } = this.#request;
    const log = path.join(directory, `log${(this.#processes += 1)}`);
    const child = spawn("ssh", sshArguments(options, { role, control: path.join(directory, "c"), log, command }), {
      // A key that is pressed in this program's terminal is not meant for the connection.
      detached: true,
      env: { ...environmentOfSsh(), [mark.name]: mark.value },
      stdio: ["pipe", "pipe", "pipe"],
    });
    let errors = "";
    if (role === "master") {
      child.stderr.on("data", (bytes: Buffer) => {
        errors = (errors + bytes.toString()).slice(-2000);
      });
    }
    let last: string | undefined;
    child.on("close", () => {
      last = readIfThere(log);
      rmSync(log, { force: true });
    });
    return { child, said: () => `${errors}\n${last ?? readIfThere(log)}` };
  }
}

/** Where an agent and tickets are found. */
const neededBySsh = ["SSH_AUTH_SOCK", "SSH_AGENT_PID", "XDG_RUNTIME_DIR", "KRB5CCNAME"];

/** Without what ssh's configuration has it send, as Debian's does: the language that ssh speaks does not matter here. */
function environmentOfSsh(): Record<string, string> {
  const all = Object.entries(hostEnvironment(neededBySsh));
  return Object.fromEntries(all.filter(([name]) => !/^(?:LANG|LANGUAGE|LC_.*)$/.test(name)));
}

function notAnswered(problem: string, ms: number): BackendUnavailableError {
  return new BackendUnavailableError(`${problem} within ${ms / 1000} s`, {
    remedy: "See what the host is busy with, and call again: that makes a new connection.",
  });
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, "utf8").slice(-4000);
  } catch {
    return "";
  }
}
