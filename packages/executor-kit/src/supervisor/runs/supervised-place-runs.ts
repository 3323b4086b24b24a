import type { CodeBlock, RunEvent } from "@fenced/core";
import type { DisplayBoard } from "../../displays/display-board.ts";
import type { PlaceRuns, RunList, RunSubmission } from "../../place.ts";
import type { BlockRun } from "../../run/block-run.ts";
import { readKeptRun, type RunNote, writeRecord } from "../../run/kept-run.ts";
import { filenameDirective } from "../../run/prepare-block.ts";
import { refusal as blockRefusal } from "../../run/run-block.ts";
import { refusal as fileRefusal } from "../files/file-request.ts";
import type { PlannedStep } from "../supervised-place.ts";
import type { RunOrder, SupervisedRuns } from "./supervised-runs.ts";

/** Bytes of text that the place keeps of a run: at least, since events are read from it, and at most. */
const [leastRoom, mostRoom] = [1_048_576, 16_777_216];

/** What a place gives its runs. */
interface PlaceParts extends Pick<RunOrder, "memorySentence" | "busErrorSentence"> {
  readonly plan: (block: BlockRun) => PlannedStep;
  /** Saves displays. Default: there are none. */
  readonly displays?: DisplayBoard;
}

/** The submitted runs of a place with a supervisor. */
export class SupervisedPlaceRuns implements PlaceRuns {
  readonly #runs: SupervisedRuns;
  readonly #parts: PlaceParts;

  constructor(runs: SupervisedRuns, parts: PlaceParts) {
    this.#runs = runs;
    this.#parts = parts;
  }

  /** The same with displays, and with some blocks planned differently. */
  with(parts: Pick<PlaceParts, "plan" | "displays">): SupervisedPlaceRuns {
    return new SupervisedPlaceRuns(this.#runs, { ...this.#parts, ...parts });
  }

  list(): Promise<RunList> {
    return this.#runs.list();
  }

  submit({ identity, blocks, record, waits, totalTimeoutMs, timeoutMs }: RunSubmission): Promise<number> {
    const { plan, memorySentence, busErrorSentence } = this.#parts;
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
      totalTimeoutMs,
      timeoutMs,
      memorySentence,
      busErrorSentence,
    });
  }

  read(number: number): AsyncGenerator<RunEvent, void, void> {
    const { displays } = this.#parts;
    return readKeptRun(this.#runs.follow(number), { displays, refusal });
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
