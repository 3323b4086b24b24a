/** Why a kernel, or the way to it, is no longer there. */
export interface KernelEnd {
  /** `died`: it ended or was restarted; `deleted`: the server knows it no more; `unreachable`: the server does not answer. */
  readonly kind: "died" | "deleted" | "unreachable";
  /** A sentence without its full stop, for people. */
  readonly reason: string;
}

/** What requests to a kernel reject with when it is lost. */
export class KernelLostError extends Error {
  readonly end: KernelEnd;

  constructor(end: KernelEnd) {
    super(end.reason);
    this.name = "KernelLostError";
    this.end = end;
  }
}
