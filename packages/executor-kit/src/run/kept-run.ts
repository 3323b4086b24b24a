import {
  BackendUnavailableError,
  type CodeBlock,
  type CodeResult,
  type ExecutionEvent,
  ExecutorStoppedError,
  type NetworkDecision,
  parseJson,
  type RunEvent,
} from "@fenced/core";
import type { BlockDisplays, DisplayBoard } from "../displays/display-board.ts";
import { RichEvents } from "../displays/rich-events.ts";
import type { StreamName } from "../output/output-collector.ts";
import type { RunWatcher } from "../place.ts";
import { programUsage } from "../supervisor/blocks/program-usage.ts";
import type { RunEntry } from "../supervisor/runs/run-entries.ts";
import { BlockOutput, type DisplayRoom, type FinishedBlock } from "./block-output.ts";
import type { BlockEvent } from "./block-run.ts";
import { combineResults } from "./run-result.ts";
import { newDisplayRoom } from "./run.ts";
import type { Sink } from "./sink.ts";

/** What a run that goes on without a program tells each program that follows it. */
export interface RunRecord {
  readonly blocks: readonly CodeBlock[];
  readonly maxOutputBytes: number;
  /** The absolute path on the host of the file with the first block. */
  readonly codeFile?: string;
  /** The session had been lost since the result before. */
  readonly lost?: true;
  /** The names of the host functions that its blocks may call. */
  readonly hostFunctions?: readonly string[];
}

/** What the host adds to a run's log. */
export type RunNote = ExecutionEvent | { readonly type: "refused"; readonly decision: NetworkDecision };

/** How to read a run. */
interface ReadSettings {
  /** Saves displays. Default: there are none. */
  readonly displays?: DisplayBoard | undefined;
  /** The error for a block whose file was refused. @param said - by the program that was to write it. */
  readonly refusal: (said: string, block: CodeBlock) => string;
  readonly watcher?: RunWatcher | undefined;
}

const leftOut = "the session keeps at most 32 MiB of the rich outputs of runs that have not ended";
/** Bytes of all notes that a run keeps, as in `runs.py`. */
const mostNoteBytes = 2_097_152;
/** A time limit is one of the place, and nothing that a reader does ends a run. */
const endless = new AbortController().signal;

/**
 * Yields a run's events, the same for each program that reads the same log.
 *
 * @throws what `executeCodeBlocks` would throw, if the run failed.
 */
export async function* readKeptRun(
  entries: AsyncIterable<RunEntry>,
  settings: ReadSettings,
): AsyncGenerator<RunEvent, void, void> {
  let reader: KeptRunReader | undefined;
  try {
    for await (const entry of entries) {
      if (entry.kind === "h") reader = new KeptRunReader(readRecord(entry.content), settings);
      else if (reader) yield* reader.read(entry);
    }
  } finally {
    reader?.leave();
  }
}

/** One block, as its entries arrive. */
interface OpenBlock {
  readonly output: BlockOutput;
  /** Bytes of its text so far, with those that are missing. What displays say as text is not part of that. */
  readonly totals: Record<StreamName, number>;
  readonly displays: BlockDisplays | undefined;
  readonly network: NetworkDecision[];
  /** Takes what the interpreter sends. */
  readonly rich: RichEvents | undefined;
  /** Ends what takes that. */
  readonly end: () => Promise<void>;
  readonly unwatch: () => void;
}

/** Turns the entries of a run's log into its events. */
class KeptRunReader implements Sink {
  readonly signal: AbortSignal = endless;
  readonly #record: RunRecord;
  readonly #settings: ReadSettings;
  readonly #finished: FinishedBlock[] = [];
  readonly #displayRoom: DisplayRoom = newDisplayRoom();
  #room: number;
  #index = -1;
  #block: OpenBlock | undefined;
  /** The events of the current entry. */
  #events: ExecutionEvent[] = [];

  constructor(record: RunRecord, settings: ReadSettings) {
    this.#record = record;
    this.#settings = settings;
    this.#room = record.maxOutputBytes;
  }

  /** Nothing more is read. */
  leave(): void {
    this.#block?.unwatch();
  }

  async *read({ number, kind, content }: RunEntry): AsyncGenerator<RunEvent, void, void> {
    if (kind === "g") {
      const [events = 1, stdout = -1, stderr = -1] = words(content);
      if (stdout >= 0) this.#skipTo({ stdout, stderr });
      yield { seq: number, event: { type: "gap", events } };
      return;
    }
    if (kind === "s") this.#begin(number);
    else await this.#take(kind, content);
    const events = fitted(this.#events, kind === "r" ? 3 : kind === "X" ? 2 : 1);
    this.#events = [];
    // The last event of an entry has the entry's number, except for displays, of which not all become events.
    const first = kind === "r" ? number - 2 : number - events.length + 1;
    for (const [at, event] of events.entries()) yield { seq: first + at, event };
  }

  write(event: BlockEvent): undefined {
    void this.#block?.output.write(event);
    const index = this.#index;
    if (event.type === "display") this.#events.push({ type: "display", index, display: event.display });
    else if (event.type !== "clear") {
      this.#events.push({ type: event.type, index, text: Buffer.from(event.data).toString() });
    }
  }

  async #take(kind: RunEntry["kind"], content: Buffer): Promise<void> {
    if (kind === "o") await this.#print("stdout", content);
    else if (kind === "e") await this.#print("stderr", content);
    else if (kind === "r") await this.#show(content);
    else if (kind === "n") this.#note(content);
    else if (kind === "f") this.write({ type: "stderr", data: `${this.#refusal(content)}\n` });
    else if (kind === "x" || kind === "X") await this.#end(content);
    else this.#finish(content);
  }

  #begin(seq: number): void {
    this.#index += 1;
    const index = this.#index;
    const conditions = {
      index,
      end: { isRejected: false },
      maxOutputBytes: this.#room,
      displayRoom: this.#displayRoom,
    };
    const displays = this.#settings.displays?.forBlock();
    const rich = displays && new RichEvents(displays, this);
    let ending: () => void = () => {};
    const over = new Promise<void>((resolve) => {
      ending = resolve;
    });
    const ended = rich?.of(() => over);
    this.#block = {
      output: new BlockOutput(endless, conditions),
      totals: { stdout: 0, stderr: 0 },
      displays,
      network: [],
      rich,
      unwatch: this.#settings.watcher?.begun(index, this.#record, seq) ?? (() => {}),
      end: async () => {
        ending();
        await ended;
      },
    };
    this.#events.push({ type: "block-start", index, block: this.#code });
  }

  async #print(type: "stdout" | "stderr", data: Buffer): Promise<void> {
    if (this.#block) this.#block.totals[type] += data.length;
    const rich = this.#block?.rich;
    if (rich) await rich.write({ type, data });
    else this.write({ type, data });
  }

  #skipTo(now: Readonly<Record<StreamName, number>>): void {
    const { output, totals } = this.#block ?? {};
    if (!output || !totals) return;
    for (const name of ["stdout", "stderr"] as const) {
      output.skip(name, now[name] - totals[name]);
      totals[name] = Math.max(totals[name], now[name]);
    }
  }

  async #show(data: Buffer): Promise<void> {
    const { rich, displays } = this.#block ?? {};
    if (data.length > 0) await rich?.write({ type: "rich", data });
    else for (const event of displays?.leaveOut(leftOut) ?? []) this.write(event);
  }

  #note(content: Buffer): void {
    const note = readNote(content);
    if (note.type === "refused") this.#block?.network.push(note.decision);
    else this.#events.push(note);
  }

  async #end(content: Buffer): Promise<void> {
    const block = this.#block;
    if (!block) return;
    block.unwatch();
    await block.end();
    const [exitCode = 1, timedOut, lost, durationMs = 0, ...used] = words(content);
    const { codeFile } = this.#record;
    const outcome = {
      exitCode,
      stateLost: lost === 1,
      truncated: block.displays?.truncated === true,
      network: block.network,
      usage: programUsage(used),
      ...(codeFile !== undefined && { codeFile }),
    };
    const end = block.output.finish(outcome, timedOut === 1, durationMs);
    this.#finished.push(end);
    this.#room -= end.keptBytes;
    this.#events.push({ type: "block-end", index: this.#index, result: end.result });
  }

  #finish(content: Buffer): void {
    const [state = "", duration = "0", ...text] = content.toString().split("\0");
    if (state !== "done") throw failure(state, text.join("\0"));
    const { blocks, lost = false } = this.#record;
    const complete = this.#finished.length === blocks.length;
    const result: CodeResult = combineResults(this.#finished, { complete, durationMs: Number(duration), lost });
    this.#events.push({ type: "result", result });
  }

  #refusal(said: Buffer): string {
    return this.#settings.refusal(said.toString(), this.#code);
  }

  get #code(): CodeBlock {
    return this.#record.blocks[this.#index] ?? { language: "", code: "" };
  }
}

/** At most so many events, by joining pieces of text that follow each other. */
function fitted(events: readonly ExecutionEvent[], most: number): readonly ExecutionEvent[] {
  const found: ExecutionEvent[] = [];
  for (const event of events) {
    const last = found.at(-1);
    if (events.length > most && last && "text" in last && "text" in event && last.type === event.type) {
      found[found.length - 1] = { ...last, text: last.text + event.text };
    } else {
      found.push(event);
    }
  }
  return found.slice(-most);
}

function words(content: Buffer): number[] {
  return content.toString().split(" ").map(Number);
}

export function writeRecord(record: RunRecord): Buffer {
  return Buffer.from(JSON.stringify(record));
}

/** The supervisor gives back what it was given, unless code has taken its place. */
function readRecord(content: Buffer): RunRecord {
  const record: unknown = parseJson(content);
  if (isRecord(record)) return record;
  throw new Error("the supervisor's stream is not valid");
}

function isRecord(value: unknown): value is RunRecord {
  return typeof value === "object" && value !== null && "blocks" in value && Array.isArray(value.blocks);
}

/** What a host function returns may be nested 500 levels deep, and have any names: only the length of a note bounds them. */
function readNote(content: Buffer): RunNote {
  const limits = { maxValues: Infinity, maxNames: Infinity, maxDepth: 510 };
  const note: unknown = content.length > mostNoteBytes ? undefined : parseJson(content, limits);
  if (isNote(note)) return note;
  throw new Error("the supervisor's stream is not valid");
}

function isNote(value: unknown): value is RunNote {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

function failure(state: string, text: string): Error {
  if (state === "cancelled") return new DOMException("The run was cancelled", "AbortError");
  if (state === "stopped") {
    return new ExecutorStoppedError("The session was restarted during this run", {
      remedy: "Submit it under a new id if the code should still run; files that it was writing may be incomplete.",
    });
  }
  return new BackendUnavailableError(text, {
    remedy:
      "Call restart(), which ends all processes there, or raise the limits on processes (`pidsLimit`) and memory.",
  });
}
