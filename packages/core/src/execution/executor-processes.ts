/** A program to start; see `ExecutorProcesses`. */
export interface ProcessOptions {
  /**
   * The program and its arguments: `["npm", "run", "dev"]`. A string is a command line for `/bin/sh`:
   * `"npm ci && npm run dev"`.
   */
  readonly command: string | readonly [string, ...string[]];
  /** Where it starts: absolute, or relative to the workspace. Default: the workspace. */
  readonly cwd?: string;
  /** Environment variables over the executor's. Default: none. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * What it reads from standard input: all of it, as text or bytes, or `true` to write it while the program runs, to
   * `stdin` of the handle. Default: nothing.
   */
  readonly stdin?: string | Uint8Array | boolean;
  /** Kills the program and everything that it started; `wait()` then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** How a program ended. */
export interface ProcessExit {
  /**
   * The program's exit code; 128 + n if signal n ended it, so 137 after `kill()`; 125 if `cwd` is missing, 126 if the
   * program cannot be executed and 127 if it does not exist, with a sentence on standard error.
   */
  readonly exitCode: number;
}

/**
 * A program that was started. It runs until it ends, is killed, or its executor stops or restarts. Children that it
 * leaves running live on until then.
 *
 * It waits while more than some hundred kilobytes of its output are not read, whether on `stdout` or `stderr`: read
 * both, or cancel the stream that you do not need, which drops that output.
 */
export interface RunningProcess extends AsyncDisposable {
  /** What it writes to standard output. Closes when the program has ended, however it ended; `wait()` tells how. */
  readonly stdout: ReadableStream<Uint8Array>;
  /** What it writes to standard error, likewise. */
  readonly stderr: ReadableStream<Uint8Array>;

  /**
   * Waits for the end of the program. It does not end while it waits for somebody to read its output.
   *
   * @throws ExecutorStoppedError if the executor was stopped or restarted.
   * @throws BackendUnavailableError if the program could not be started, or the backend broke down.
   * @throws `options.signal.reason` if the signal was aborted.
   */
  wait(): Promise<ProcessExit>;

  /** Kills the program and everything that it started, and waits for their end. Does nothing after its end. */
  kill(): Promise<void>;

  /** Does the same as `kill()`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** A program that was started with `stdin: true`. */
export interface WritableProcess extends RunningProcess {
  /**
   * What it reads from standard input. A write resolves when it is on its way: some hundred kilobytes can be, over SSH some
   * megabytes, before the program has to read, or writers wait. Closing it lets the
   * program read to the end of its input, and aborting it drops what has not been sent yet.
   *
   * A write rejects with `InvalidInputError` once the program has ended or closed its input (where that cannot be seen, as
   * in a container without Python, once it has ended), and with the reason of `wait()` if `signal` was aborted or the
   * executor stopped or restarted. Closing never rejects because the program has ended.
   */
  readonly stdin: WritableStream<Uint8Array>;
}

/**
 * Starts programs that run beside blocks: servers, watchers, tools of a shell. They have the same fence, files, variables
 * and limits as blocks, except for time limits, and cannot call host functions.
 */
export interface ExecutorProcesses {
  /**
   * Ports of programs there that can be reached from this host, each with the port of 127.0.0.1 to connect to. Accurate
   * after `start()` of the executor; empty if it publishes none.
   */
  readonly ports: ReadonlyMap<number, number>;

  /**
   * Starts a program, and before it an executor that was never started. Resolves as soon as the program has been
   * requested.
   *
   * @throws InvalidInputError if an option is unknown or wrong.
   * @throws ExecutorStoppedError if the executor was stopped.
   * @throws BackendUnavailableError if the backend cannot be reached.
   * @throws `options.signal.reason` if the signal was aborted.
   *
   * @example
   * await using server = await executor.processes.start({ command: ["python3", "-m", "http.server", "8000"] });
   * for await (const bytes of server.stderr) process.stderr.write(bytes);
   */
  start(options: ProcessOptions & { readonly stdin: true }): Promise<WritableProcess>;
  start(options: ProcessOptions): Promise<RunningProcess>;
}
