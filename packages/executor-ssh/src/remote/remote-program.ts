import { readFileSync } from "node:fs";
import { pathBytes } from "@fenced/executor-kit";
import { carrierText, supervisorLoader } from "@fenced/executor-kit/supervisor";

/** The shell program that keeps a session on the remote host. */
const supervisorProgram: string = readFileSync(new URL("./supervisor.sh", import.meta.url), "utf8");
/** The shell program that runs one block, or answers one file request. */
export const callProgram: string = readFileSync(new URL("./call.sh", import.meta.url), "utf8");

/** The shell program that starts the carrier of calls, a Python program. */
const carryProgram: string = readFileSync(new URL("./carry.sh", import.meta.url), "utf8");

/** The shell program that starts the supervisor of blocks, a Python program. */
const superviseProgram: string = readFileSync(new URL("./supervise.sh", import.meta.url), "utf8");

/** Settings of a supervisor. */
export interface SupervisorConfig {
  /** Globally unique name of the session. */
  readonly id: string;
  /** The secret part of the marks around outputs. */
  readonly nonce: string;
  /** Prefix of the session's own files in the work directory. */
  readonly filePrefix: string;
  /** Keep the files of unnamed blocks. */
  readonly keepFiles: boolean;
  /** The functions' module, and its owner. */
  readonly functionsModule: string;
  readonly owner: string;
  /** The file in the functions' package that names its owner. */
  readonly functionsMarker: string;
  /** The work directory; `undefined` for a temporary one. */
  readonly workDir: string | undefined;
  /** `PATH` to search for programs; `undefined` for ssh's. */
  readonly path: string | undefined;
  /** Seconds of silence from this side after which the supervisor ends everything. */
  readonly silenceSeconds: number;
  /** Programs to look for. */
  readonly programs: readonly string[];
}

/** A program to run on the remote host. */
export interface RemoteProgram {
  /** The command for any login shell there. Other users of the host can see it, so it contains no secrets. */
  readonly command: string;
  /** The program itself, to write to the command's standard input first. */
  readonly text: Uint8Array;
}

/**
 * A shell program with its arguments. It travels over standard input and is not stored on the remote host, where code
 * could rewrite it. If it arrives incomplete, it does nothing.
 *
 * @param name - the name of the process there.
 */
export function remoteProgram(name: string, program: string, words: readonly string[]): RemoteProgram {
  // A path among the words may not be UTF-8.
  const text = pathBytes(`set -- ${words.map(quoted).join(" ")}\n${program.replaceAll(/^ *#.*\n/gm, "")}`);
  return {
    command: `sh -c 'eval "$(dd bs=${text.length} count=1 iflag=fullblock status=none)"' fenced-${name}`,
    text,
  };
}

/** The program that carries connections from programs there to this process, run by the Python there. */
export function carrierFor(python: string, directory: string, greeting: string): RemoteProgram {
  return remoteProgram("calls", carryProgram, [python, carrierText(), directory, greeting]);
}

/**
 * The program that starts and ends blocks in place of `call.sh`, run by the Python there.
 *
 * @param greeting - what it prints before its id and everything else.
 * @param place - `directory`: its own, which it creates and removes; `path`: the `PATH` that finds Python, if not ssh's.
 */
export function blockSupervisorFor(
  greeting: string,
  {
    directory,
    workspace,
    path = "",
  }: { readonly directory: string; readonly workspace: string; readonly path?: string | undefined },
): RemoteProgram & { readonly content: Uint8Array } {
  const { command, program } = supervisorLoader({ directory, workspace });
  return { ...remoteProgram("blocks", superviseProgram, [greeting, workspace, path, ...command]), content: program };
}

/** The supervisor, as a program with its arguments. */
export function supervisorFor(config: SupervisorConfig): RemoteProgram {
  return remoteProgram("supervisor", supervisorProgram, [
    config.id,
    config.nonce,
    config.filePrefix,
    config.keepFiles ? "keep" : "",
    config.functionsModule,
    config.owner,
    config.functionsMarker,
    config.workDir ?? "",
    config.path ?? "",
    String(config.silenceSeconds),
    ...config.programs,
  ]);
}

/** Quotes a word for a POSIX shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
