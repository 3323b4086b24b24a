import type { CodeBlock } from "@fenced/core";
import type { CommonExecutorOptions } from "./common-executor-options.ts";

/** The environment variable in which a host program finds its request, as JSON. */
export const hostRequestVariable = "FENCED_TESTKIT_HOST_REQUEST";

/** What the suite asks of a host program. */
export interface HostRequest {
  readonly options: CommonExecutorOptions;
  /** Calls of `executeCodeBlocks`, one after another. */
  readonly calls: readonly (readonly CodeBlock[])[];
  /** The directory that `os.tmpdir()` shall be for the executor. */
  readonly temporary: string;
  /** What to do when the calls are over. */
  readonly end: "stop" | "exit" | "throw";
}

/** What a host program says, one JSON text a line, after a mark that nothing else writes. */
export type HostReport =
  | { readonly type: "result"; readonly exitCode: number; readonly output: string }
  | { readonly type: "stopped"; readonly children: readonly string[] };

/** What a line of the host program's output starts with if it is a report. */
export const hostReportMark = "fenced-testkit:";
