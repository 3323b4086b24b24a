import { readFileSync } from "node:fs";
import { carrierText } from "@fenced/executor-kit/supervisor";

/** The shell program that keeps a session on the remote host. */
const supervisorProgram: string = readFileSync(new URL("./supervisor.sh", import.meta.url), "utf8");
/** The shell program that runs one block, or answers one request for a file. */
export const callProgram: string = readFileSync(new URL("./call.sh", import.meta.url), "utf8");

/** The shell program that becomes the carrier of calls, a program in Python. */
const carryProgram: string = readFileSync(new URL("./carry.sh", import.meta.url), "utf8");

/** What a supervisor is made for. */
export interface SupervisorConfig {
  /** Names the session; unique in the world. */
  readonly id: string;
  /** The secret part of the marks around outputs. */
  readonly nonce: string;
  /** What the names of the session's own files in the work directory begin with. */
  readonly filePrefix: string;
  /** Keep the files of blocks without a name. */
  readonly keepFiles: boolean;
  /** The functions' module, and who sets it up. */
  readonly functionsModule: string;
  readonly owner: string;
  /** The file in the functions' package that names its owner. */
  readonly functionsMarker: string;
  /** The work directory; `undefined`: a temporary one. */
  readonly workDir: string | undefined;
  /** `PATH` to look on for programs; `undefined`: the one that ssh gives. */
  readonly path: string | undefined;
  /** Seconds without a word from this side after which everything is ended. */
  readonly silenceSeconds: number;
  /** Programs to look for. */
  readonly programs: readonly string[];
}

/** A program that the remote host is to run. */
export interface RemoteProgram {
  /** What the login shell there, whichever it is, is told. It is public on the host, and has no secrets. */
  readonly command: string;
  /** The program itself, to be written to its standard input before all else. */
  readonly text: string;
}

/**
 * A shell program with its arguments. It travels over standard input and is stored nowhere on the remote host, where code
 * could rewrite it; one that does not arrive as a whole does nothing.
 *
 * @param name - by which the process is seen there.
 */
export function remoteProgram(name: string, program: string, words: readonly string[]): RemoteProgram {
  const text = `set -- ${words.map(quoted).join(" ")}\n${program.replaceAll(/^ *#.*\n/gm, "")}`;
  const bytes = Buffer.byteLength(text);
  return {
    command: `sh -c 'eval "$(dd bs=${bytes} count=1 iflag=fullblock status=none)"' fenced-${name}`,
    text,
  };
}

/** What carries connections of programs there to this one, by a Python there. */
export function carrierFor(python: string, directory: string, greeting: string): RemoteProgram {
  return remoteProgram("calls", carryProgram, [python, carrierText(), directory, greeting]);
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

/** A word that a POSIX shell takes as it is. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
