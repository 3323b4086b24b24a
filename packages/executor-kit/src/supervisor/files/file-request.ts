import { Readable } from "node:stream";
import { BackendUnavailableError, sanitizeTerminalText } from "@fenced/core";
import { followSignals } from "@fenced/core/abort";
import { isLiveInput } from "../../processes/program-input.ts";
import { Room } from "../../run/room.ts";
import type { OutputPiece, Sink } from "../../run/sink.ts";
import { asWorkspaceError } from "../../workspace/workspace-errors.ts";
import type { ProgramEnd, SupervisedProgram } from "../blocks/supervised-program.ts";
import { filesProgram } from "../python-programs.ts";
import type { Supervisor } from "../supervisor.ts";

/** Milliseconds that a request may take without moving any data; code can stop the program that answers. */
const quietMs = 30_000;
/** Bytes of an answer that may wait for its reader. */
const answerBytes = 262_144;
/** Maximum length of an error in characters. */
const longestError = 200;

/** What runs the programs that answer requests: a supervisor, or something that does part of a supervisor's work. */
export interface FilesRunner extends Partial<Pick<Supervisor, "isCut">> {
  run(
    program: Pick<SupervisedProgram, "argv" | "env" | "stdin">,
    sink: Sink<OutputPiece>,
  ): Promise<Pick<ProgramEnd, "exitCode">>;
}

/** Where files are, and how to access them; read for each request, after `supervisor`. */
export interface FilesPlace {
  /** The directory in which programs run. Absolute path there. */
  readonly workspace: string;
  /** Path of Python 3.8 or later, from the `programs` of the inventory. */
  readonly python: string;
  /** Returns the current supervisor; a lost one may have been replaced. */
  readonly supervisor: () => Promise<FilesRunner>;
}

/** One request. */
export interface FileRequest {
  /** Its arguments, as `files.py` explains them; the workspace precedes them. */
  readonly words: readonly string[];
  /** The paths that the request is about, for errors. Default: the second word. */
  readonly names?: readonly string[];
  readonly stdin?: Uint8Array | AsyncIterable<Uint8Array>;
  /** Milliseconds without any data. Default: 30 s. */
  readonly limitMs?: number;
  /** Milliseconds in all. Default: no limit. */
  readonly mostMs?: number;
  /** The program to ask. Default: `filesProgram`. */
  readonly program?: string;
  /** The supervisor to ask. Default: the current one. */
  readonly supervisor?: FilesRunner;
  /** Ends the answer early. Default: only its reader does. */
  readonly signal?: AbortSignal;
}

/**
 * Has the program answer a request.
 *
 * @returns what it prints.
 */
export async function* ask(
  place: FilesPlace,
  { words, names, stdin, program: text = filesProgram, limitMs = quietMs, mostMs, signal, ...given }: FileRequest,
): AsyncGenerator<Uint8Array, void, void> {
  const [, file = "."] = words;
  const supervisor = given.supervisor ?? (await place.supervisor());
  const { python, workspace } = place;
  const ending = new AbortController();
  const unfollow = followSignals(ending, [signal]);
  let late: NodeJS.Timeout | undefined;
  const program = {
    ...requestProgram({ python, workspace }, words, text),
    ...(stdin === undefined ? {} : { stdin: isLiveInput(stdin) ? watched(stdin, () => late?.refresh()) : stdin }),
  };
  const answer = new Answer(ending.signal);
  const ended = answer.follow(supervisor.run(program, answer));
  // Its reader may be busy elsewhere when it fails.
  ended.catch(() => {});
  let passed = limitMs;
  const most =
    mostMs === undefined
      ? undefined
      : setTimeout(() => {
          passed = mostMs;
          ending.abort();
        }, mostMs);
  const giveUp = (): void => {
    // A supervisor that cannot be reached now has not been silent.
    if (supervisor.isCut === true) late = setTimeout(giveUp, limitMs);
    else ending.abort();
  };
  try {
    for (const pieces = answer.pieces(); ;) {
      late = setTimeout(giveUp, limitMs);
      const { value, done } = await pieces.next().finally(() => clearTimeout(late));
      late = undefined;
      if (signal?.aborted === true) return;
      if (ending.signal.aborted) throw notAnswered(names?.[0] ?? file, passed);
      if (done === true) break;
      yield value;
    }
    if ((await ended).exitCode !== 0) throw refusal(answer.errors, names ?? [file]);
  } finally {
    clearTimeout(most);
    unfollow();
    // A reader that leaves early does not need the rest.
    ending.abort();
    answer.drop();
    await ended.catch(() => {});
  }
}

/** The program that answers a request. */
export function requestProgram(
  { python, workspace }: Pick<FilesPlace, "python" | "workspace">,
  words: readonly string[],
  text: string = filesProgram,
): Pick<SupervisedProgram, "argv" | "env"> {
  return { argv: [python, "-I", "-S", "-X", "utf8", "-c", text, workspace, ...words], env: {} };
}

/** What a request's program prints, for one reader. */
class Answer implements Sink<OutputPiece> {
  readonly signal: AbortSignal;
  errors = "";
  readonly #stream: Readable;
  readonly #room = new Room();

  constructor(signal: AbortSignal) {
    this.signal = signal;
    this.#stream = new Readable({ highWaterMark: answerBytes, read: () => this.#room.open() });
  }

  write({ type, data }: OutputPiece): Promise<void> | undefined {
    if (type === "stderr") {
      this.errors = (this.errors + Buffer.from(data).toString()).slice(-longestError);
      return undefined;
    }
    if (this.signal.aborted || this.#stream.push(Buffer.from(data))) return undefined;
    return this.#room.opened;
  }

  /** Ends with the program. */
  async follow<End>(program: Promise<End>): Promise<End> {
    try {
      return await program;
    } finally {
      this.#stream.push(null);
    }
  }

  pieces(): AsyncIterator<Uint8Array, undefined> {
    return this.#stream[Symbol.asyncIterator]();
  }

  drop(): void {
    this.#stream.destroy();
  }
}

async function* watched(
  pieces: AsyncIterable<Uint8Array>,
  onPiece: () => void,
): AsyncGenerator<Uint8Array, void, void> {
  for await (const piece of pieces) {
    onPiece();
    yield piece;
  }
}

/**
 * The error that a request's program has printed.
 *
 * @param said - the errno name, how many of the files are finished, and the message.
 */
export function refusal(said: string, files: readonly string[]): unknown {
  const [, code = "EIO", finished = 0, text = `the request was ended; ${said}`] =
    /^(E[A-Z0-9]+) (\d+) ([^]*)$/.exec(said) ?? [];
  if (code === "ESTALE") return goneWorkspace();
  const file = files[Number(finished)] ?? ".";
  return asWorkspaceError(Object.assign(new Error(sanitizeTerminalText(text.trim())), { code }), file);
}

function goneWorkspace(): BackendUnavailableError {
  return new BackendUnavailableError("The work directory no longer exists where the code runs", {
    remedy: "Stop the executor; the next call starts it with a new one.",
  });
}

function notAnswered(file: string, limitMs: number): BackendUnavailableError {
  return new BackendUnavailableError(
    `The request for ${JSON.stringify(file)} was not answered within ${limitMs / 1000} s`,
    { remedy: "Call restart(), which ends all processes there, and try again." },
  );
}
