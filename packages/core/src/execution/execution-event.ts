import type { HostCallError } from "../functions/host/host-call.ts";
import type { JsonValue } from "../json-value.ts";
import type { CodeBlock } from "./code-block.ts";
import type { BlockResult, CodeResult } from "./code-result.ts";
import type { Display } from "./display.ts";

/**
 * What happens during a run, as it happens. `index` is the block's position in the list of blocks. A stream ends with
 * exactly one `result`. A character is never split over two text events. The stream carries all output, including what
 * the bounded result leaves out. Each `host-call` is followed by a `host-result` with the same `callId`, unless the
 * executor's call is aborted first.
 */
export type ExecutionEvent =
  | { readonly type: "block-start"; readonly index: number; readonly block: CodeBlock }
  | { readonly type: "stdout" | "stderr"; readonly index: number; readonly text: string }
  | { readonly type: "display"; readonly index: number; readonly display: Display }
  | ({ readonly index: number } & HostCallEvent)
  | { readonly type: "block-end"; readonly index: number; readonly result: BlockResult }
  | { readonly type: "result"; readonly result: CodeResult };

/** An event about a call of a host function. */
export type HostCallEvent = HostCallStart | HostCallEnd;

/** Code calls a host function. */
export interface HostCallStart {
  readonly type: "host-call";
  /** Identifies the call; globally unique. */
  readonly callId: string;
  /** The function's name. */
  readonly name: string;
  /** The arguments, as the program passed them. */
  readonly input: JsonValue;
}

/** A call of a host function has ended with either an `output` or an `error`. */
export interface HostCallEnd {
  readonly type: "host-result";
  /** The `callId` of the `host-call`. */
  readonly callId: string;
  readonly name: string;
  /** What the program received. */
  readonly output?: JsonValue;
  /** The error that the program received instead. */
  readonly error?: HostCallError;
  readonly durationMs: number;
}
