import {
  BackendUnavailableError,
  InvalidInputError,
  parseJson,
  type RunIdentity,
  RunNotFoundError,
} from "@fenced/core";
import { within } from "@fenced/core/abort";
import type { WaitingCall } from "../../host-calls/waiting-call.ts";
import type { ListedRun, RunList } from "../../place.ts";
import type { Send } from "../blocks/running-programs.ts";
import { runsProgram } from "../python-programs.ts";
import { framePieces, frameType } from "../wire/wire.ts";
import { Following, longestEntry } from "./following.ts";
import { Parts } from "./parts.ts";
import type { RunEntry } from "./run-entries.ts";

/**
 * Time limit for a cancelled run to end in milliseconds; and how often it begins again, because what the run printed
 * is still arriving.
 */
const [killMs, mostExtensions] = [10_000, 30];
/** Bytes of one call; the supervisor lets through fewer. And how many can be open in a block: 64 of each of 128 connections. */
const [longestCall, mostOpenCalls] = [2_097_152, 8192];

/** The frames that start what a block consists of; or what it prints instead, if it cannot run. */
export interface RunStep {
  /** A program that writes the block's file first. Default: none. */
  readonly write?: Buffer;
  readonly main?: Buffer;
  /** Instead of `main`, if its file cannot be written because the disk is full. Default: the run fails. */
  readonly inline?: Buffer;
  readonly say?: string;
}

/** A run to hand on to the supervisor. */
export interface RunOrder extends RunIdentity {
  /** What a program that follows the run gets first. */
  readonly record: Buffer;
  readonly steps: readonly RunStep[];
  /** Bytes of text that the supervisor keeps. */
  readonly room: number;
  /** What the blocks prove with that they may call host functions. Default: they may not. */
  readonly tokens?: readonly string[] | undefined;
  /** Limit on the work directory, which the supervisor has measured before, and what is said if it ends a block. */
  readonly workspace?: { readonly maxBytes: number; readonly sentence: string } | undefined;
  /** It waits for `go` before its first block, as long as this program is connected. Default: false. */
  readonly waits: boolean;
  /** Time limits in milliseconds. */
  readonly totalTimeoutMs: number;
  readonly timeoutMs: number;
  /** What is added to the output of a block that ran out of memory, or was ended by SIGBUS. */
  readonly memorySentence: string;
  readonly busErrorSentence: string;
}

/** A call that is not answered. */
interface OpenCall {
  readonly parts: Parts;
  readonly ending: AbortController;
}

/** A block whose calls this program answers. */
interface ServedBlock {
  readonly block: number;
  readonly take: (call: WaitingCall) => void;
  readonly open: Map<string, OpenCall>;
}

/** A caller that waits for an answer. */
interface Waiting<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

interface RunsSettings {
  readonly newNumber: () => number;
  /** An earlier host has submitted runs there. */
  readonly isLoaded: boolean;
  readonly lose: (error: Error) => void;
  /** The supervisor cannot be reached now, but may be later. */
  readonly isCut: () => boolean;
}

/** The submitted runs with which a supervisor goes on without this program. */
export class SupervisedRuns {
  readonly #send: Send;
  readonly #newNumber: RunsSettings["newNumber"];
  readonly #lose: RunsSettings["lose"];
  readonly #isCut: RunsSettings["isCut"];
  readonly #submitting = new Map<number, Waiting<string>>();
  readonly #listing: Waiting<RunList>[] = [];
  readonly #notes = new Map<number, Waiting<true>[]>();
  readonly #followed = new Map<number, Following>();
  readonly #served = new Map<number, ServedBlock>();
  #isLoaded: boolean;
  #found: { readonly runs: ListedRun[]; readonly forgotten: Map<string, string> } = { runs: [], forgotten: new Map() };
  #lost: Error | undefined;

  constructor(send: Send, { newNumber, isLoaded, lose, isCut }: RunsSettings) {
    this.#send = send;
    this.#lose = lose;
    this.#isCut = isCut;
    this.#newNumber = newNumber;
    this.#isLoaded = isLoaded;
  }

  /** Lists what the supervisor keeps. */
  list(): Promise<RunList> {
    if (!this.#isLoaded) return Promise.resolve({ runs: [], forgotten: new Map() });
    const found = this.#wait<RunList>((waiting) => this.#listing.push(waiting));
    this.#ask(0, "list");
    return found;
  }

  /**
   * Hands a run on; from then on, it goes on without this program.
   *
   * @returns its number.
   * @throws InvalidInputError if it is too large; BackendUnavailableError if there is no room for it.
   */
  async submit(order: RunOrder): Promise<number> {
    if (this.#lost) throw this.#lost;
    const { record, steps } = order;
    if (record.length > longestEntry) throw tooLarge(record.length);
    const number = this.#newNumber();
    const seconds = [order.totalTimeoutMs, order.timeoutMs].map((limit) => String(limit / 1000));
    const { memorySentence, busErrorSentence } = order;
    const sentences = [memorySentence, busErrorSentence];
    const spare = steps.map(() => this.#newNumber());
    const identity = [JSON.stringify(order.id), order.content, order.uuid];
    const turns = order.waits ? "serial" : "";
    this.#ask(number, "open", ...identity, order.room, ...seconds, turns, ...sentences, ...spare);
    this.#pieces(number, "record\0", record);
    for (const [index, step] of steps.entries()) {
      for (const name of ["write", "main", "inline", "say"] as const) {
        const content = step[name];
        if (content !== undefined) this.#pieces(number, `step\0${index}\0${name}\0`, Buffer.from(content));
      }
    }
    if (order.workspace) this.#ask(number, "limit", order.workspace.maxBytes, order.workspace.sentence);
    if (order.tokens) this.#ask(number, "tokens", ...order.tokens);
    const answer = this.#wait<string>((waiting) => this.#submitting.set(number, waiting));
    this.#ask(number, "submit");
    const said = await answer.finally(() => this.#submitting.delete(number));
    if (said === "accepted") return number;
    throw said === "full" ? noRoom() : submittedAlready(order.id);
  }

  /**
   * Yields a run's record, then what is in its log, then what is added to it, until it has ended. At most one reader
   * follows a run.
   *
   * @throws the error passed to `fail`, if the supervisor is lost; RunNotFoundError if the log is no longer kept.
   */
  follow(number: number): AsyncGenerator<RunEntry, void, void> {
    const following = new Following(
      (position) => this.#ask(number, "follow", position),
      () => this.#ask(number, "leave"),
    );
    if (this.#lost) following.fail(this.#lost);
    this.#followed.set(number, following);
    return following.read(() => this.#followed.delete(number));
  }

  /**
   * Answers the calls of host functions that a block makes from now on, and those that wait.
   *
   * @param take - receives each call.
   * @returns a function to call when the block has ended.
   */
  serve(number: number, block: number, take: (call: WaitingCall) => void): () => void {
    const serving = { block, take, open: new Map<string, OpenCall>() };
    this.#served.set(number, serving);
    this.#ask(number, "serve", block);
    return () => {
      for (const { ending } of serving.open.values()) ending.abort(programEnded());
      if (this.#served.get(number) === serving) this.#served.delete(number);
    };
  }

  /** Lets a run begin that has waited for its turn. */
  go(number: number): void {
    this.#ask(number, "go");
  }

  /** Ends a run, whose log says when it is over. A supervisor that does not end it in time is given up. */
  cancel(number: number): void {
    this.#ask(number, "cancel");
    const following = this.#followed.get(number);
    if (following) void this.#giveUp(following);
  }

  async #giveUp(following: Following): Promise<void> {
    for (let extensions = 0; extensions < mostExtensions;) {
      const { taken } = following;
      if ((await within(killMs, following.ended)) === true || this.#lost) return;
      // One that cannot be reached now has not been silent; and over a slow connection, the end comes after all output.
      if (this.#isCut()) continue;
      if (following.taken === taken) break;
      extensions += 1;
    }
    this.#lose(notEnded());
  }

  /** Adds a text to a run's log; resolves once it is there, or was left out because there are too many. */
  async note(number: number, text: string): Promise<void> {
    const waiting = this.#notes.get(number) ?? [];
    this.#notes.set(number, waiting);
    const noted = this.#wait<true>((each) => waiting.push(each));
    this.#ask(number, "note", text);
    await noted;
  }

  /** Handles a report from the supervisor. */
  report(type: number, number: number, payload: Buffer): void {
    if (type === frameType.runEntry) this.#followed.get(number)?.take(payload);
    else if (type === frameType.runCall) this.#called(number, payload);
    else this.#told(number, payload.toString().split("\0"));
  }

  fail(error: Error): void {
    this.#lost = error;
    const notes = [...this.#notes.values()].flat();
    for (const { reject } of [...this.#submitting.values(), ...this.#listing, ...notes]) reject(error);
    for (const following of this.#followed.values()) following.fail(error);
    for (const { open } of this.#served.values()) for (const { ending } of open.values()) ending.abort(error);
  }

  /** Handles a part of a call. */
  #called(number: number, payload: Buffer): void {
    const serving = this.#served.get(number);
    if (serving?.block !== payload.readUInt32BE(8)) return;
    const key = String(payload.readBigUInt64BE(0));
    const call = serving.open.get(key) ?? { parts: new Parts(longestCall), ending: new AbortController() };
    serving.open.set(key, call);
    if (serving.open.size > mostOpenCalls) throw new Error("the supervisor passed on more calls than it can have");
    call.parts.add(payload.subarray(13));
    if (payload.readUInt8(12) !== 1) return;
    serving.take({
      payload: call.parts.take(),
      ending: call.ending,
      begin: () => this.#ask(number, "call", key),
      answer: (kind, content) => {
        if (!serving.open.delete(key) || call.ending.signal.aborted) return;
        const pieces = [...framePieces(content)];
        for (const [at, piece] of pieces.entries()) {
          const head = ["answer", key, kind, at + 1 === pieces.length ? 1 : 0, ""].join("\0");
          this.#sendRuns(number, Buffer.concat([Buffer.from(head), piece]));
        }
      },
    });
  }

  #told(number: number, [verb, word = "", content = "", uuid = "", state, last]: string[]): void {
    const { runs, forgotten } = this.#found;
    const id = verb === "run" || (verb === "forgotten" && number === 0) ? String(parseJson(word)) : "";
    if (verb === "uncall") this.#served.get(number)?.open.get(word)?.ending.abort(programEnded());
    else if (verb === "noted") this.#notes.get(number)?.shift()?.resolve(true);
    else if (verb === "forgotten" && number === 0) forgotten.set(id, content);
    else if (verb === "forgotten") this.#followed.get(number)?.fail(forgottenRun());
    else if (verb === "run" && (state === "running" || state === "finished" || state === "failed")) {
      runs.push({ number, id, content, uuid, state, lastSeq: Number(last) });
    } else if (verb === "listed") {
      this.#listing.shift()?.resolve({ runs, forgotten });
      this.#found = { runs: [], forgotten: new Map() };
    } else this.#submitting.get(number)?.resolve(verb ?? "");
  }

  #wait<T>(add: (waiting: Waiting<T>) => unknown): Promise<T> {
    if (this.#lost) return Promise.reject(this.#lost);
    return new Promise((resolve, reject) => {
      add({ resolve, reject });
    });
  }

  #pieces(number: number, head: string, bytes: Buffer): void {
    for (const piece of framePieces(bytes)) this.#sendRuns(number, Buffer.concat([Buffer.from(head), piece]));
  }

  #ask(number: number, ...words: readonly (string | number)[]): void {
    this.#sendRuns(number, Buffer.from(words.join("\0")));
  }

  #sendRuns(number: number, payload: Buffer): void {
    // The first frame contains the program itself.
    if (!this.#isLoaded) this.#send(frameType.runs, 0, Buffer.from(runsProgram));
    this.#isLoaded = true;
    this.#send(frameType.runs, number, payload);
  }
}

function programEnded(): DOMException {
  return new DOMException("The program ended before the call did", "AbortError");
}

function notEnded(): BackendUnavailableError {
  return new BackendUnavailableError(`A run did not end within ${killMs / 1000} s after it was cancelled`, {
    remedy: "Call again to start a new supervisor.",
  });
}

function tooLarge(bytes: number): InvalidInputError {
  return new InvalidInputError(`The run has ${bytes} bytes of code; the limit is ${longestEntry}`, {
    remedy: "Pass large inputs as files.",
  });
}

function noRoom(): BackendUnavailableError {
  return new BackendUnavailableError("The session has no room for another run that has not ended", {
    remedy: "Wait until others have ended, cancel some, or lower `maxOutputBytes`.",
  });
}

function submittedAlready(id: string): BackendUnavailableError {
  return new BackendUnavailableError(`The run ${JSON.stringify(id)} has been submitted to this session before`, {
    remedy: "Connect to the session again to read it.",
  });
}

function forgottenRun(): RunNotFoundError {
  return new RunNotFoundError("The run has ended, and its events are no longer kept", {
    remedy: "Read results before 100 later runs have ended, or submit the code under a new id.",
  });
}
