import type { CodeBlock, RunEvent, SessionHandle } from "@fenced/core";
import type { CommonExecutorOptions } from "./common-executor-options.ts";

/** The environment variable in which a host program finds its request, as JSON. */
export const hostRequestVariable = "FENCED_TESTKIT_HOST_REQUEST";

/** A run that a host program submits. */
interface Submission {
  readonly id: string;
  readonly blocks: readonly CodeBlock[];
}

/** The suite's request to a host program. */
export interface HostRequest {
  readonly options: CommonExecutorOptions;
  /** Calls of `executeCodeBlocks`, made one after another. */
  readonly calls: readonly (readonly CodeBlock[])[];
  /** Runs to submit after that. Their events are reported. */
  readonly submissions?: readonly Submission[];
  /** The directory that the executor must see as `os.tmpdir()`. */
  readonly temporary: string;
  /** What to do after the calls: `wait` reports the session's handle before them, and waits to be killed. */
  readonly end: "stop" | "exit" | "throw" | "wait";
}

/** A host program's report: one JSON text per line, after a mark that nothing else prints. */
export type HostReport =
  | { readonly type: "result"; readonly exitCode: number; readonly output: string }
  | { readonly type: "started"; readonly handle: SessionHandle | undefined }
  | { readonly type: "submitted"; readonly id: string; readonly uuid: string }
  | ({ readonly type: "event"; readonly id: string } & RunEvent)
  | { readonly type: "stopped"; readonly children: readonly string[] };

/** The start of an output line that is a report. */
export const hostReportMark = "fenced-testkit:";
