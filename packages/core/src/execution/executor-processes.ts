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
   * runs. Default: nothing.
   */
  readonly stdin?: string | Uint8Array | boolean | undefined;
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
}

/**
 * A program that was started. It runs until it ends, is killed, or its executor stops or restarts. Child processes that
 * it leaves behind keep running until the executor stops or restarts.
 *
 * The program blocks while more than a few hundred kilobytes of its `stdout` or `stderr` are unread: read both, or
 * cancel the stream that you do not need, which discards its output.
 */
export interface RunningProcess extends AsyncDisposable {
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

  /** Kills the program and everything that it started, and waits for their end. Does nothing after its end. */
  kill(): Promise<void>;

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

/**
 * Starts programs that run alongside blocks: servers, watchers, shell tools. They have the same isolation, files,
 * environment variables and limits as blocks, but no time limits, and they cannot call host functions.
 */
export interface ExecutorProcesses {
  /**
   * The programs' ports that this host can reach, each mapped to the port on 127.0.0.1 to connect to. Accurate after
   * the executor's `start()`; empty if it publishes none.
   */
  readonly ports: ReadonlyMap<number, number>;

  /**
   * Starts a program, and first the executor if it was never started. Resolves as soon as the program has been
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
