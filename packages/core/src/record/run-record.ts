import type { RunUsage } from "../execution/run-usage.ts";
import type { WorkspaceChanges } from "../execution/workspace-changes.ts";

/** A block of a run, without its code. */
export interface RecordedBlock {
  /** As the caller named it. */
  readonly language: string;
  /** SHA-256 of the code in UTF-8, in hexadecimal. */
  readonly sha256: string;
  /** How it ended; absent if it did not begin, or its end is not known. */
  readonly exitCode?: number;
  readonly durationMs?: number;
}

/** A host that code connected to, or was kept from. */
export interface RecordedHost {
  readonly host: string;
  readonly port: number;
  /** Why it was refused; absent if it was not. */
  readonly reason?: string;
}

/** A call of a host function, without arguments and results. */
export interface RecordedHostCall {
  readonly name: string;
  /** `unfinished`: the program ended first, or the run was aborted. */
  readonly outcome: "returned" | "failed" | "unfinished";
}

/** What a record says of a run. */
export interface RecordedRun {
  /** The class of the executor. */
  readonly executor: string;
  readonly blocks: readonly RecordedBlock[];
  /** `rejected`: the call failed or was aborted, and has no result. */
  readonly outcome: "finished" | "rejected";
  /** Why it was rejected. */
  readonly error?: string;
  /** As in the result; absent if there is none. */
  readonly exitCode?: number;
  readonly timedOut?: boolean;
  readonly stateLost?: boolean;
  /** Milliseconds from the call to its end, including the wait for its turn and the start. */
  readonly durationMs: number;
  /** Absent if they cannot be known. */
  readonly changes?: WorkspaceChanges;
  /**
   * As `CodeResult.usage`; of a run without a result, what is known of the blocks that began. Absent if nothing is known.
   */
  readonly usage?: RunUsage;
  /** Hosts that the network policy let the code reach; absent if the place does not know. */
  readonly reached?: readonly RecordedHost[];
  /** As `CodeResult.network`; absent if there were none, or there is no result. */
  readonly refused?: readonly RecordedHost[];
  /** In order of their start. */
  readonly hostCalls: readonly RecordedHostCall[];
}

/** Keeps what runs did: the option `record` of all executors. `recordFile` creates one. */
export interface RunRecorder {
  /**
   * Makes sure that a run can be recorded. Called before each run; if it rejects, the run rejects, and no code runs.
   *
   * @throws FencedError if that is not possible.
   */
  begin(): Promise<void>;
  /**
   * Adds a run that has ended, however it ended.
   *
   * @throws FencedError if that is not possible. The result then says so (`CodeResult.unrecorded`), and a warning.
   */
  add(run: RecordedRun): Promise<void>;
}
