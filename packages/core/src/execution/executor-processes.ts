import type { Duplex } from "node:stream";

/** The size of a terminal in characters, each from 1 to 65,535. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** The signals that `RunningProcess.kill` sends, by their names on Linux. */
export const processSignals = [
  "SIGABRT",
  "SIGALRM",
  "SIGBUS",
  "SIGCHLD",
  "SIGCONT",
  "SIGFPE",
  "SIGHUP",
  "SIGILL",
  "SIGINT",
  "SIGKILL",
  "SIGPIPE",
  "SIGPROF",
  "SIGQUIT",
  "SIGSEGV",
  "SIGSTOP",
  "SIGSYS",
  "SIGTERM",
  "SIGTRAP",
  "SIGTSTP",
  "SIGTTIN",
  "SIGTTOU",
  "SIGURG",
  "SIGUSR1",
  "SIGUSR2",
  "SIGVTALRM",
  "SIGWINCH",
  "SIGXCPU",
  "SIGXFSZ",
] as const;

/** The name of a signal. */
export type ProcessSignal = (typeof processSignals)[number];

/** A program to start; see `ExecutorProcesses`. */
export interface ProcessOptions {
  /**
   * The program and its arguments: `["npm", "run", "dev"]`. A string is a command line for `/bin/sh`:
   * `"npm ci && npm run dev"`.
   */
  readonly command: string | readonly [string, ...string[]];
  /** Where it starts: absolute, or relative to the workspace. Default: the workspace. */
  readonly cwd?: string | undefined;
  /** Environment variables; they override the executor's. Default: none. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /**
   * The whole of its standard input, as text or bytes, or `true` to write to the handle's `stdin` while the program
   * runs. Default: nothing. With `pty`, its input is the terminal, so leave this out.
   */
  readonly stdin?: string | Uint8Array | boolean | undefined;
  /**
   * Runs the program on a new terminal of this size, as its session leader: both of its outputs arrive in `stdout`, in
   * order, and what is written to `stdin` is what a user types. `TERM` is `xterm-256color` unless it is set. Needs
   * `capabilities.terminals`. Default: no terminal.
   */
  readonly pty?: TerminalSize | undefined;
  /** Standard error arrives in `stdout` too, in the order in which it was written; `stderr` is empty. Default: false. */
  readonly merged?: boolean | undefined;
  /**
   * Kills the program and everything that it started after so many milliseconds; `wait()` then resolves with
   * `timedOut: true`. In a session that outlives this program, the limit ends with it. Default: no limit.
   */
  readonly timeoutMs?: number | undefined;
  /** Kills the program and everything that it started; `wait()` then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** How a program ended. */
export interface ProcessExit {
  /**
   * The program's exit code; 128 + n if signal n ended it, so 137 after `kill()`; 125 if `cwd` is missing, 126 if the
   * program cannot be executed and 127 if it does not exist, with a sentence on standard error.
   */
  readonly exitCode: number;
  /** Its `timeoutMs` was over, so it was killed. Absent otherwise. */
  readonly timedOut?: true;
}

/**
 * A program that was started. It runs until it ends, is killed, or its executor stops or restarts. Child processes that
 * it leaves behind keep running until the executor stops or restarts.
 *
 * The program blocks while more than a few hundred kilobytes of its `stdout` or `stderr` are unread: read both, or
 * cancel the stream that you do not need, which discards its output.
 */
export interface RunningProcess extends AsyncDisposable {
  /**
   * Its process id, as programs of its place see it: by it, `list` and `connect` name the program. `undefined` if it
   * could not be started, and where the executor does not learn it (in a container without Python).
   */
  readonly pid: number | undefined;
  /** Standard output. Closes when the program has ended, however it ended; `wait()` tells how. */
  readonly stdout: ReadableStream<Uint8Array>;
  /** Standard error; closes like `stdout`. */
  readonly stderr: ReadableStream<Uint8Array>;

  /**
   * Waits for the program to end. A program that is blocked because its output is unread does not end.
   *
   * @throws ExecutorStoppedError if the executor was stopped or restarted.
   * @throws BackendUnavailableError if the program could not be started, or the backend broke down.
   * @throws `options.signal.reason` if the signal was aborted.
   */
  wait(): Promise<ProcessExit>;

  /**
   * Kills the program and everything that it started, and waits for their end. Does nothing after its end.
   *
   * @param signal - any but `SIGKILL` is only sent, to the program and its process group, as a terminal sends Ctrl-C;
   *   this does not wait for its effect. Default: `SIGKILL`.
   * @throws InvalidInputError if the signal has another name, or cannot be sent where the program runs (in a container
   *   without Python).
   */
  kill(signal?: ProcessSignal): Promise<void>;

  /** Does the same as `kill()`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** A program that was started with `stdin: true`. */
export interface WritableProcess extends RunningProcess {
  /**
   * Standard input. A write resolves once the data is buffered; a few hundred kilobytes (over SSH, a few megabytes) fit
   * before writers wait for the program to read. Closing the stream ends the program's input; aborting it drops what
   * has not been sent yet.
   *
   * A write rejects with `InvalidInputError` once the program has ended or closed its input (only once it has ended
   * where the executor cannot see that, as in a container without Python), and with the reason of `wait()` if `signal`
   * was aborted or the executor stopped or restarted. Closing never rejects because the program has ended.
   */
  readonly stdin: WritableStream<Uint8Array>;
}

/** A program that was started with `pty`. Closing `stdin` does not end its input; write the byte 4 (Ctrl-D) for that. */
export interface TerminalProcess extends WritableProcess {
  /**
   * Changes the size of its terminal; the kernel tells the program by SIGWINCH. Does nothing after its end.
   *
   * @throws InvalidInputError if the size is wrong.
   */
  resize(size: TerminalSize): Promise<void>;
}

/** A program that is running. */
export interface ListedProcess {
  /** Its process id, as programs of its place see it. */
  readonly pid: number;
  /** As it was given to `start`; one with more than 4096 characters is cut off. */
  readonly command: string | readonly string[];
  /** As it was given to `start`. Absent if it was not, or is longer than 4096 characters. */
  readonly cwd?: string;
  readonly startedAt: Date;
  /** It runs on a terminal. */
  readonly pty: boolean;
}

/**
 * One more handle on a program. Its streams have what the program writes from now on. Disposing of this handle lets go
 * of the program, which runs on; `kill()` ends it.
 */
export interface ConnectedProcess extends RunningProcess {
  /** As for `WritableProcess`; what several handles write arrives one write after another. Absent if it takes no input. */
  readonly stdin?: WritableStream<Uint8Array>;
  /** As for `TerminalProcess`. Absent if it has no terminal. */
  resize?(size: TerminalSize): Promise<void>;
}

/**
 * Starts programs that run alongside blocks: servers, watchers, shell tools. They have the same isolation, files,
 * environment variables and limits as blocks, but no time limits of their own, and they cannot call host functions.
 */
export interface ExecutorProcesses {
  /**
   * The programs' ports that this host can reach, each mapped to the port on 127.0.0.1 to connect to. Accurate after
   * the executor's `start()`; empty if it publishes none.
   */
  readonly ports: ReadonlyMap<number, number>;

  /**
   * Starts a program, and first the executor if it was never started. Resolves once the program runs, or could not be
   * started, which `wait()` then tells.
   *
   * @throws InvalidInputError if an option is unknown or wrong, or not possible here (`pty`).
   * @throws ExecutorStoppedError if the executor was stopped.
   * @throws BackendUnavailableError if the backend cannot be reached.
   * @throws `options.signal.reason` if the signal was aborted.
   *
   * @example
   * await using server = await executor.processes.start({ command: ["python3", "-m", "http.server", "8000"] });
   * for await (const bytes of server.stderr) process.stderr.write(bytes);
   */
  start(options: ProcessOptions & { readonly pty: TerminalSize }): Promise<TerminalProcess>;
  start(options: ProcessOptions & { readonly stdin: true }): Promise<WritableProcess>;
  start(options: ProcessOptions): Promise<RunningProcess>;

  /**
   * Lists the programs that `start` has started and that still run, oldest first; in a session that outlives its
   * program (`keepAliveMs`), also those of the programs before this one. At most 1000; never starts the executor.
   *
   * @throws ExecutorStoppedError if the executor was stopped.
   */
  list(): Promise<readonly ListedProcess[]>;

  /**
   * Connects to a program that `start` has started, by any number of handles at a time. For up to a minute after its
   * end, `wait()` of a new handle tells how it ended. While a handle leaves more than a few hundred kilobytes of its
   * streams unread, the program waits: read both, cancel them, or dispose of the handle.
   *
   * @throws InvalidInputError if there is no such program.
   * @throws ExecutorStoppedError if the executor was stopped.
   */
  connect(pid: number): Promise<ConnectedProcess>;

  /**
   * Returns where on this host a port of the programs is reached, also if they reach no network: `127.0.0.1:` and a
   * number. It leads to that port in whatever place the executor has, so it stays the same when a program or the executor
   * restarts, until the executor stops. Starts the executor if it was never started. While no program listens on the
   * port, or listens only on other addresses than 127.0.0.1 and ::1, connections end at once. At most 64 ports have
   * addresses, and 128 connections are open at a time; more end at once.
   *
   * All programs and users of this host can connect to the address. Needs `capabilities.addresses`.
   *
   * @throws InvalidInputError if `port` is no port from 1 to 65,535, or there can be no address for it.
   * @throws ExecutorStoppedError if the executor was stopped.
   * @throws BackendUnavailableError if the backend cannot be reached.
   *
   * @example
   * await executor.processes.start({ command: ["python3", "-m", "http.server", "8000"] });
   * const response = await fetch(`http://${await executor.processes.address(8000)}/`);
   */
  address(port: number): Promise<string>;

  /**
   * Connects to a port of the programs, without an address that others could use, for a server that leads its own clients
   * there. While no program listens on the port, the connection breaks at once. Starts the executor if it was never
   * started. Needs `capabilities.addresses`, and counts as one of the 128 connections.
   *
   * @throws InvalidInputError if `port` is no port from 1 to 65,535, or ports cannot be reached here.
   * @throws ExecutorStoppedError if the executor was stopped.
   * @throws BackendUnavailableError if the backend cannot be reached, or there are too many connections.
   */
  openPort(port: number): Promise<Duplex>;
}
