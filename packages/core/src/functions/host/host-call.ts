import type { JsonValue } from "../../json-value.ts";

/** What a host function receives besides the arguments. */
export interface HostCallContext {
  /** Identifies the call, as in the events; globally unique. */
  readonly callId: string;
  /**
   * Aborted when the result is no longer needed: the block timed out, its call was aborted, or the calling program or
   * task ended.
   */
  readonly signal: AbortSignal;
}

/** A call of a host function that needs approval. */
export interface HostCall extends HostCallContext {
  /** The function's name. */
  readonly name: string;
  /** The block's position in the list of blocks. */
  readonly index: number;
  /** The arguments as the program passed them; they match the function's schema. */
  readonly input: JsonValue;
  /** Whether the function itself says that this call needs approval. */
  readonly needsApproval: boolean;
}

/** The decision about a call that needs approval. */
export interface HostCallApproval {
  readonly approved: boolean;
  /** Reported to the program if the call is not approved. */
  readonly reason?: string;
}

/**
 * Decides about one call while the program waits and its time limit keeps running. If it throws, the call is not
 * approved.
 */
export type ApproveHostCall = (call: HostCall) => HostCallApproval | Promise<HostCallApproval>;

/** Whether calls of a function need approval: all or none, or by their arguments, as its schema gives them. */
export type NeedsApproval<Input = unknown> =
  | boolean
  | ((input: Input, context: HostCallContext) => boolean | Promise<boolean>);

/** Why a call failed, as the program is told. */
export interface HostCallError {
  /** The name of the error, e.g. `TypeError`. */
  readonly name: string;
  /** Without stack traces and host paths. */
  readonly message: string;
}
