import type { JsonValue } from "../../json-value.ts";

/** What a host function knows of its call, besides the arguments. */
export interface HostCallContext {
  /** Names the call; unique in the world. The same as in the events. */
  readonly callId: string;
  /**
   * Aborted when nobody waits for the result any more: the block's time is up, its call was aborted, the program or the task in
   * it that called has ended.
   */
  readonly signal: AbortSignal;
}

/** A call of a host function that waits for approval. */
export interface HostCall extends HostCallContext {
  /** The function's name. */
  readonly name: string;
  /** The block's place in the list of blocks. */
  readonly index: number;
  /** The arguments as the program gave them; they fit the function's schema. */
  readonly input: JsonValue;
}

/** The answer to a call that waits for approval. */
export interface HostCallApproval {
  readonly approved: boolean;
  /** Told to the program if the call was not approved. */
  readonly reason?: string;
}

/** Decides about one call; the program waits for it, and its time limit goes on. If it throws, the call is not approved. */
export type ApproveHostCall = (call: HostCall) => HostCallApproval | Promise<HostCallApproval>;

/** Why a call failed, as the program is told. */
export interface HostCallError {
  /** The name of the error, e.g. `TypeError`. */
  readonly name: string;
  /** Without stack traces and paths of the host. */
  readonly message: string;
}
