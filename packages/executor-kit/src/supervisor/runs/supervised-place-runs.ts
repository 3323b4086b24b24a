import type { CodeBlock, RunEvent } from "@fenced/core";
import type { DisplayBoard } from "../../displays/display-board.ts";
import type { WaitingCall } from "../../host-calls/waiting-call.ts";
import type { PlaceRuns, RunList, RunSubmission, RunWatcher } from "../../place.ts";
import type { BlockRun } from "../../run/block-run.ts";
import { workspaceFull } from "../../run/guard-workspace.ts";
import { readKeptRun, type RunNote, writeRecord } from "../../run/kept-run.ts";
import { filenameDirective } from "../../run/prepare-block.ts";
import { refusal as blockRefusal } from "../../run/run-block.ts";
import { refusal as fileRefusal } from "../files/file-request.ts";
import type { PlannedStep } from "../supervised-place.ts";
import type { SessionNetwork } from "../tunnels/session-network.ts";
import type { RunOrder, SupervisedRuns } from "./supervised-runs.ts";

/** Bytes of text that the place keeps of a run: at least, since events are read from it, and at most. */
const [leastRoom, mostRoom] = [1_048_576, 16_777_216];

/** What a place gives its runs. */
interface PlaceParts extends Pick<RunOrder, "memorySentence" | "busErrorSentence"> {
  readonly plan: (block: BlockRun) => PlannedStep;
  /** Saves displays. Default: there are none. */
  readonly displays?: DisplayBoard;
  readonly measure: ((atMost: number) => Promise<number>) | undefined;
  /** See `SessionNetwork`. */
  readonly watchRefusals?: SessionNetwork["watchRefusals"] | undefined;
}

/** The submitted runs of a place with a supervisor. */
export class SupervisedPlaceRuns implements PlaceRuns {
  readonly #runs: SupervisedRuns;
  readonly #parts: PlaceParts;
  /** The runs of earlier programs that had not ended when this one came. */
  readonly #left = new Set<number>();

  constructor(runs: SupervisedRuns, parts: PlaceParts) {
    this.#runs = runs;
    this.#parts = parts;
  }

  /** The same with displays, and with some blocks planned differently. */
  with(parts: Pick<PlaceParts, "plan" | "displays">): SupervisedPlaceRuns {
    return new SupervisedPlaceRuns(this.#runs, { ...this.#parts, ...parts });
  }

  async list(): Promise<RunList> {
    const list = await this.#runs.list();
    for (const { number, state } of list.runs) if (state === "running") this.#left.add(number);
    return list;
  }

  async submit({
    identity,
    blocks,
    record,
    waits,
    tokens,
    maxWorkspaceBytes: maxBytes,
    totalTimeoutMs,
    timeoutMs,
    signal,
  }: RunSubmission): Promise<number> {
    const { plan, memorySentence, busErrorSentence } = this.#parts;
    // The supervisor loads what measures when it is first asked.
    if (maxBytes !== undefined) await this.#parts.measure?.(0);
    // A restart ends only runs that are there.
    signal.throwIfAborted();
    const planned = blocks.map((block): PlannedStep =>
      "problem" in block ? { step: { say: `${block.problem}\n` } } : plan(block),
    );
    const codeFile = planned[0]?.codeFile;
    return this.#runs.submit({
      ...identity,
      record: writeRecord({ ...record, ...(codeFile !== undefined && { codeFile }) }),
      steps: planned.map(({ step }) => step),
      room: Math.min(Math.max(record.maxOutputBytes, leastRoom), mostRoom),
      waits,
      tokens,
      ...(maxBytes !== undefined && { workspace: { maxBytes, sentence: workspaceFull(maxBytes) } }),
      totalTimeoutMs,
      timeoutMs,
      memorySentence,
      busErrorSentence,
    });
  }

  async *read(number: number, watcher?: RunWatcher): AsyncGenerator<RunEvent, void, void> {
    const { displays, watchRefusals } = this.#parts;
    // The proxy is in this program, and its refusals belong to the result.
    const unwatch = watchRefusals?.((decision) => {
      void this.note(number, { type: "refused", decision }).catch(() => {});
    }, this.#left.has(number));
    try {
      yield* readKeptRun(this.#runs.follow(number), { displays, refusal, watcher });
    } finally {
      unwatch?.();
    }
  }

  serve(number: number, block: number, take: (call: WaitingCall) => void): () => void {
    return this.#runs.serve(number, block, take);
  }

  go(number: number): void {
    this.#runs.go(number);
  }

  cancel(number: number): void {
    this.#runs.cancel(number);
  }

  note(number: number, note: RunNote): Promise<void> {
    return this.#runs.note(number, JSON.stringify(note));
  }
}

/** The sentence for a block whose file could not be written. */
function refusal(said: string, { code }: CodeBlock): string {
  return blockRefusal(fileRefusal(said, [filenameDirective(code) ?? "."]));
}
