import { readFileSync } from "node:fs";
import { functionsPackageMarker, pathBytes } from "@fenced/executor-kit";
import { attachProgram, keeperText, type SessionAddress, supervisorLoader } from "@fenced/executor-kit/supervisor";

/** The shell program that finds Python there. */
const startProgram: string = readFileSync(new URL("./start.sh", import.meta.url), "utf8");
/** The Python program that starts the supervisor, and ends everything once that or the connection has ended. */
const keeperProgram: string = readFileSync(new URL("./keeper.py", import.meta.url), "utf8");
/** The same for a session that outlives its connections, and one for others. */
const keepers: Readonly<Record<"kept" | "other", string>> = {
  kept: keeperText(keeperProgram, true),
  other: keeperText(keeperProgram, false),
};

/** Settings of a session on the remote host. */
export interface RemoteSession {
  /** Printed before anything else; nobody else knows it. */
  readonly greeting: string;
  /** Globally unique name of the session there. */
  readonly id: string;
  /** The work directory; `undefined` for a temporary one. */
  readonly workDir: string | undefined;
  /** Prefix of the session's own files in the work directory. */
  readonly filePrefix: string;
  /** Keep the files of unnamed blocks. */
  readonly keepFiles: boolean;
  /** The functions' module, and its owner. */
  readonly functionsModule: string;
  readonly owner: string;
  /** `PATH` to search for programs; `undefined` for that of the account. */
  readonly path: string | undefined;
  /** Seconds of silence from this side after which everything there ends. */
  readonly silenceSeconds: number;
  /** Programs to look for. */
  readonly programs: readonly string[];
  /** The abstract socket for later connections of a session that outlives this one. Default: it ends with it. */
  readonly socket?: SessionAddress["socket"] | undefined;
}

/** A program to run on the remote host. */
export interface RemoteProgram {
  /** The command for any login shell there. Other users of the host can see it, so it contains no secrets. */
  readonly command: string;
  /** The program itself, to write to the command's standard input. It is not stored there, where code could change it. */
  readonly text: Uint8Array;
}

/** The program that becomes the keeper and the supervisor. If it arrives incomplete, it does nothing. */
export function remoteProgram(session: RemoteSession): RemoteProgram {
  const { path = "", programs } = session;
  const words = [
    session.greeting,
    path,
    session.socket === undefined ? keepers.other : keepers.kept,
    `FENCED_REMOTE=${session.id}`,
    session.workDir ?? "",
    session.filePrefix,
    session.keepFiles ? "keep" : "",
    session.functionsModule,
    session.owner,
    functionsPackageMarker,
    String(session.silenceSeconds),
    session.socket ?? "",
  ];
  // A path among the words may not be UTF-8.
  const text = pathBytes(`set -- ${words.map(quoted).join(" ")}\n${startProgram.replaceAll(/^ *#.*\n/gm, "")}`);
  // The keeper replaces the directories, which only it knows.
  const { program } = supervisorLoader({ directory: "", workspace: "", path, programs });
  return { command: readingCommand(text.length), text: Buffer.concat([text, program]) };
}

/**
 * The program that connects to a session that outlives its connections.
 *
 * @param python - path of the Python there.
 */
export function attachingProgram(python: string, socket: string): RemoteProgram {
  const words = [python, "-I", "-S", "-X", "utf8", "-c", attachProgram, socket];
  const text = pathBytes(`exec ${words.map(quoted).join(" ")}`);
  return { command: readingCommand(text.length), text };
}

/** Runs the shell program that so many bytes of standard input are. */
function readingCommand(length: number): string {
  return `exec sh -c 'eval "$(dd bs=${length} count=1 iflag=fullblock status=none)"' fenced-session`;
}

/** Quotes a word for a POSIX shell. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
