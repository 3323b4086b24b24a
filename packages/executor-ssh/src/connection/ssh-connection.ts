import { randomUUID } from "node:crypto";
import { once } from "node:events";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import { killProcesses } from "@fenced/executor-kit";
import {
  callProgram,
  remoteProgram,
  type RemoteProgram,
  supervisorFor,
  type SupervisorConfig,
} from "../remote/remote-program.ts";
import type { SshExecutorOptions } from "../ssh-executor-options.ts";
import { readGreeting, type Greeting } from "./greeting.ts";
import type { SshCall } from "./ssh-arguments.ts";
import { connectionError, noSsh } from "./ssh-error.ts";
import { startSsh, type SshProcess } from "./ssh-process.ts";

/** Time limit for the host's greeting in milliseconds. */
const openMs = 60_000;
/** Time limit for it to end processes in milliseconds. */
const answerMs = 20_000;
const closeMs = 10_000;
const beatMs = 10_000;
const stuckMs = 1000;
const longestGreeting = 262_144;

/** What a connection needs. */
export interface ConnectionRequest {
  readonly options: SshExecutorOptions;
  /** A directory of this host for this connection only. Its path must be short, because a socket's path is limited. */
  readonly directory: string;
  /** A variable for all programs that the connection starts on this host. */
  readonly mark: { readonly name: string; readonly value: string };
  readonly supervisor: SupervisorConfig;
}

/**
 * One connection to the remote host, and the supervisor at its other end, which ends everything there when the
 * connection ends. All other programs run over the same connection.
 */
export class SshConnection {
  readonly #request: ConnectionRequest;
  readonly #master: SshProcess;
  readonly #ended: Promise<unknown>;
  readonly #answers = new Map<string, { resolve: () => void; reject: (error: Error) => void }[]>();
  readonly #calls = new Set<SshProcess>();
  #greeting: Greeting | undefined;
  #lost: Error | undefined;
  #onLost: (reason: string) => void = () => {};
  #text = "";
  #processes = 0;
  #heart: NodeJS.Timeout | undefined;

  private constructor(request: ConnectionRequest) {
    this.#request = request;
    const { command, text } = supervisorFor(request.supervisor);
    this.#master = this.#spawn("master", `exec ${command}`);
    const { child } = this.#master;
    this.#ended = once(child, "close").catch(() => {});
    child.on("error", (error) => this.#lose(noSsh(error)));
    child.on("close", () => this.#lose(this.#whyEnded()));
    child.stdin.write(text);
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

  /** Why nothing can run there any longer; `undefined` while the connection works. */
  get lost(): Error | undefined {
    return this.#lost;
  }

  /** Calls `action` once, as soon as nothing can run there any longer, unless the connection is closed. */
  whenLost(action: (reason: string) => void): void {
    if (this.#lost) action(this.#lost.message);
    else this.#onLost = action;
  }

  /** The secret part of the marks around outputs. */
  get nonce(): string {
    return this.#request.supervisor.nonce;
  }

  /** Starts the program for a call on the remote host. */
  start(name: string, words: readonly string[]): SshProcess {
    if (this.#lost) throw this.#lost;
    const { directory, workspace, setsid, shell } = this.greeting;
    const { nonce, filePrefix } = this.#request.supervisor;
    const part = `${filePrefix}part-${randomUUID()}`;
    const place = [nonce, directory, workspace, setsid, shell, part];
    return this.run(name, remoteProgram("call", callProgram, [...place, ...words]));
  }

  /** Starts a program on the remote host under a name that lets the supervisor find it. */
  run(name: string, { command, text }: RemoteProgram): SshProcess {
    if (this.#lost) throw this.#lost;
    const { id } = this.#request.supervisor;
    // The mark lets the supervisor find it. It is set from the start, because exports of a running shell are not
    // visible outside.
    const started = this.#spawn("session", `exec env FENCED_SSH_CALL=${id}.${name}. ${command}`);
    this.#calls.add(started);
    started.child.on("close", () => this.#calls.delete(started));
    // Data sent in one piece arrives in one packet, and does not wait for an acknowledgement of an earlier packet.
    started.child.stdin.cork();
    started.child.stdin.write(text);
    return started;
  }

  /** Tells the supervisor which process leads the session of a call's program. */
  tellLeader(call: string, pid: number): void {
    if (!this.#lost) this.#master.child.stdin.write(`leader ${call} ${pid}\n`);
  }

  /** Kills a call and everything that it started. */
  async kill(call: string): Promise<void> {
    await this.#ask(`kill ${call}`);
  }

  /** Kills everything that blocks left running. */
  async reset(): Promise<void> {
    await this.#ask("reset");
  }

  /** Ends the connection; the supervisor ends and deletes everything on the remote host. */
  async close(): Promise<void> {
    clearInterval(this.#heart);
    this.#onLost = () => {};
    const { child, kill } = this.#master;
    child.ref();
    child.stdin.end();
    const late = setTimeout(kill, this.#lost ? 0 : closeMs);
    await this.#ended;
    clearTimeout(late);
    for (const call of this.#calls) call.kill();
    // A proxy may have left ssh's group.
    await killProcesses({ mark: this.#request.mark });
  }

  async #greet(): Promise<void> {
    const { child } = this.#master;
    child.stdout.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    await this.#answer("ready", "The host did not answer", openMs);
    this.#heart = setInterval(() => child.stdin.write("beat\n"), beatMs);
    this.#heart.unref();
    // The connection alone does not keep Node alive.
    this.#master.unref();
  }

  #read(text: string): void {
    this.#text += text;
    if (this.#greeting) {
      this.#readAnswers();
      return;
    }
    const [, said] = this.#text.split(`\u001Efenced-${this.nonce}:hello\n`);
    if (said !== undefined && /^(?:ready|problem .*)\n/m.test(said)) this.#welcome(said);
    else if (this.#text.length > longestGreeting) this.#lose(notAnswered("The host sent an unexpected answer", openMs));
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
    if (!this.#lost) this.#master.child.stdin.write(`${words}\n`);
    await this.#answer(words, "Processes on the host did not end", answerMs);
  }

  async #answer(word: string, problem: string, milliseconds: number): Promise<void> {
    if (this.#lost) throw this.#lost;
    const answered = new Promise<void>((resolve, reject) => {
      this.#answers.set(word, [...(this.#answers.get(word) ?? []), { resolve, reject }]);
    });
    const late = setTimeout(() => this.#lose(notAnswered(problem, milliseconds)), milliseconds);
    try {
      await answered;
    } finally {
      clearTimeout(late);
    }
  }

  #lose(error: Error): void {
    if (this.#lost) return;
    this.#lost = error;
    this.#onLost(error.message);
    clearInterval(this.#heart);
    this.#master.kill();
    for (const waiting of this.#answers.values()) for (const { reject } of waiting) reject(error);
    this.#answers.clear();
    // Programs end on their own when their connection is gone, unless it is stuck.
    setTimeout(() => {
      for (const call of this.#calls) call.kill();
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
    return startSsh(options, { role, control: path.join(directory, "c"), log, command }, mark);
  }
}

function notAnswered(problem: string, ms: number): BackendUnavailableError {
  return new BackendUnavailableError(`${problem} within ${ms / 1000} s`, {
    remedy: "Check what keeps the host busy, and call again to reconnect.",
  });
}
