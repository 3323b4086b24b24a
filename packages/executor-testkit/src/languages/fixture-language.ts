import type { CodeBlock } from "@fenced/core";

/**
 * How a program starts another process, in order of difficulty: plainly; in a new session and process group; the same
 * through an intermediate process that has ended; with an empty environment; in a new session with an empty
 * environment, so that only its parent reveals its origin.
 */
export type ChildKind = (typeof childKinds)[number];

/** All of these ways. */
export const childKinds = ["child", "new-session", "double-fork", "no-environment", "no-traces"] as const;

/**
 * Fixture programs in one language. Every method returns one statement (or a few) as source code; `program` joins them
 * into a block. A statement that a language cannot express is left out, and the cases that need it are skipped.
 *
 * Statements must not leave names behind that could break a second block in the same session.
 */
export interface FixtureLanguage {
  /** The canonical name of the language. */
  readonly name: string;
  /** The extension of its files, without a dot. */
  readonly extension: string;
  /** Starts a line comment. */
  readonly comment: "#" | "//";
  /** The ways to start a process in this language. */
  readonly childKinds: readonly ChildKind[];

  /** A block that executes the statements in order. */
  program(...statements: readonly string[]): CodeBlock;
  /** Does nothing, in one line that is not a comment. */
  nothing(): string;
  /** Writes a line to standard output, without buffering. */
  print(text: string): string;
  /** Writes text unchanged, without buffering. */
  write(text: string, to?: "stdout" | "stderr"): string;
  /** Writes bytes to standard output, without buffering. */
  writeBytes?(bytes: readonly number[]): string;
  /** Writes one character many times. */
  fill(character: string, count: number, to?: "stdout" | "stderr"): string;
  /** Writes the lines `line 0` to `line <count - 1>`. */
  lines(count: number): string;
  /** Fails in the usual way for this language, with the message on standard error. */
  fail(message: string): string;
  /** Ends the process with this exit code. */
  exit(code: number): string;
  /** Waits. */
  sleep(milliseconds: number): string;

  /** Prints a line from standard input after `read:`; fails if there is none. */
  printLineRead(): string;
  /** Prints the number of characters in the rest of standard input after `length:`. */
  printInputLength?(): string;
  /** Prints an environment variable after `<name>=`; `(unset)` if there is none. */
  printVariable(name: string): string;

  /** Sets a variable of the session. */
  assign(name: string, value: string): string;
  /** Prints a variable of the session; fails if there is none. */
  printAssigned(name: string): string;
  /** The source of a module that exports a value. */
  moduleSource(value: string): string;
  /** Imports a module by its path in the workspace and prints the value. */
  printImported(path: string): string;
  /** Imports a user function and prints its return value. */
  printCall?(module: string, name: string, ...parameters: readonly number[]): string;

  /** Writes a file, in a directory that exists. */
  writeFile(path: string, text: string): string;
  /** Prints a file; fails if it does not exist. */
  printFile(path: string): string;
  /** Prints `exists` or `missing`. */
  printExists(path: string): string;
  /** Creates a directory and its parents, unless they exist. */
  makeDirectory(path: string): string;
  /** Removes a directory with everything in it. */
  removeDirectory(path: string): string;
  /** Creates a symbolic link. */
  symlink(target: string, link: string): string;
  /** Waits until a file exists, for a few minutes at most. */
  awaitFile(path: string): string;

  /** Appends a byte to a file every 50 ms for a few minutes, even if it is interrupted or asked to stop. */
  beatStubbornly(file: string): string;
  /** Appends a byte to a file every 50 ms for a few minutes. */
  beat(file: string): string;
  /**
   * Starts a process that appends a byte to `file` every 50 ms for a few minutes, and keeps standard output open; waits
   * until it beats. Its id is in `<file>.pid`.
   */
  spawnBeating(file: string, kind: ChildKind): string;
  /** Writes 64 KiB to standard output and then a byte to `file`, `times` times. */
  flood(file: string, times: number): string;

  /**
   * Starts a process that listens on the loopback interface and writes its port to a file; waits until the file exists.
   */
  spawnServer?(portFile: string): string;
  /** Prints the server's answer (`pong`), or `no answer`. */
  callServer?(portFile: string): string;
}
