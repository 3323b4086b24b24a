/** A call of a host function that waits in the place. */
export interface WaitingCall {
  /** As in `call-frames.ts`. */
  readonly payload: Buffer;
  /** Aborted when nobody waits for the answer any more. */
  readonly ending: AbortController;
  /** Call this before the function: no other program is then given this call. */
  readonly begin: () => void;
  readonly answer: (kind: number, content: Buffer) => void;
}
