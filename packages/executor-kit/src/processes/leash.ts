import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import net from "node:net";
import type { Writable } from "node:stream";
import { functionsPackageMarker } from "../functions/function-modules.ts";
import type { ControlGroup } from "./control-group.ts";
import { removalFunctions } from "./removal-functions.ts";

/** The name under which the shell is started, followed by what it removes. */
const leashName = "fenced-leash";

const leashProgram: string = readFileSync(new URL("./leash.sh", import.meta.url), "utf8");

/** What a leash cleans up if this program ends without releasing it. */
export interface LeashOptions {
  /** Kills every process whose environment has this variable. Linux only. */
  readonly mark: { readonly name: string; readonly value: string };
  /** Ends all processes of these control groups, and removes them; they need not exist yet. */
  readonly controlGroups?: readonly ControlGroup[] | undefined;
  /** Deletes these files and directories. Absolute paths. */
  readonly remove: readonly string[];
  /** Deletes all files and directories whose absolute paths start with one of these. */
  readonly removePrefixes?: readonly string[] | undefined;
  /** Where `makePipe` makes a named pipe. Absolute path in one of the directories to delete. Default: nowhere. */
  readonly pipe?: string | undefined;
  /** Deletes this directory if the file `functionsPackageMarker` in it contains `owner`. Absolute path. */
  readonly removeOwned?: string | undefined;
  /** Default: the value of `mark`. */
  readonly owner?: string | undefined;
}

/**
 * Ends what a session started if this program ends first, in whatever way, even by `kill -9`. A tiny shell program in
 * its own process session waits for its standard input to end. It takes a millisecond to start and a megabyte of
 * memory, and does not keep Node running. Not available on Windows.
 */
export class Leash {
  readonly #shell: ChildProcess | undefined;

  constructor(options: LeashOptions) {
    if (process.platform === "win32") return;
    const { mark, controlGroups = [], remove, removePrefixes = [], removeOwned = "", pipe } = options;
    const words = [
      mark.name,
      mark.value,
      options.owner ?? mark.value,
      controlGroups.map(({ directory }) => directory).join("\n"),
      removeOwned,
      functionsPackageMarker,
      pipe ?? "",
      String(removePrefixes.length),
      ...removePrefixes,
      ...remove,
    ];
    this.#shell = spawn("/bin/sh", ["-c", `${removalFunctions}\n${leashProgram}`, leashName, ...words], {
      cwd: "/",
      detached: true,
      env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
      stdio: ["pipe", pipe === undefined ? "ignore" : "pipe", "ignore"],
    });
    // Without a shell there is no leash, but blocks still run and stop() still cleans up.
    this.#shell.on("error", () => {});
    this.#shell.unref();
    for (const stream of [this.#shell.stdin, this.#shell.stdout]) {
      stream?.on("error", () => {});
      if (stream instanceof net.Socket) stream.unref();
    }
  }

  /** The shell's process, by which `isCleaning` finds it; `undefined` if there is none. */
  get pid(): number | undefined {
    return this.#shell?.pid;
  }

  /**
   * True if this process is a leash that removes a directory, and is neither done nor stopped. Linux only.
   *
   * @param directory - one of its `remove`.
   */
  static async isCleaning(pid: number, directory: string): Promise<boolean> {
    try {
      const [words, status] = await Promise.all(
        ["cmdline", "status"].map((name) => readFile(`/proc/${pid}/${name}`, "utf8")),
      );
      const [, ...given] = (words ?? "").split(`\0${leashName}\0`);
      return given.join("\0").split("\0").includes(directory) && !/^State:\s+[TtZX]/m.test(status ?? "");
    } catch {
      return false;
    }
  }

  /**
   * Makes the named pipe, of which nothing may exist, without starting a process from this program. Returns whether that
   * worked.
   */
  async makePipe(): Promise<boolean> {
    const { stdin, stdout } = this.#shell ?? {};
    if (!(stdout instanceof net.Socket) || stdout.destroyed || stdin?.writable !== true) return false;
    stdout.ref();
    stdin.write("\n");
    const answer = await new Promise<string>((resolve) => {
      const settle = (bytes?: Buffer): void => {
        stdout.off("data", settle).off("close", ended);
        resolve(bytes?.toString() ?? "");
      };
      const ended = (): void => settle();
      stdout.on("data", settle).on("close", ended);
    });
    stdout.unref();
    return answer === "made\n";
  }

  /**
   * Gives the leash to a program that outlives this one: it then waits for that program's end instead.
   *
   * @param start - starts the program, which holds the stream among its descriptors as long as it lives.
   */
  handTo<T>(start: (stream: Writable) => T): T {
    const stdin = this.#shell?.stdin;
    if (!stdin) throw new Error("there is no leash");
    try {
      return start(stdin);
    } finally {
      stdin.destroy();
    }
  }

  /** Ends the leash without ending or deleting anything. */
  async release(): Promise<void> {
    const shell = this.#shell;
    if (shell?.pid === undefined || shell.exitCode !== null || shell.signalCode !== null) return;
    shell.ref();
    const ended = once(shell, "exit");
    shell.kill("SIGKILL");
    await ended;
    for (const stream of [shell.stdin, shell.stdout]) stream?.destroy();
  }
}
