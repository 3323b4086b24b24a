/** How many executors a pool has now, and how many callers wait. */
export interface PoolCounts {
  /** Executors that wait for a caller. */
  readonly ready: number;
  /** Executors that are being made, started, warmed up, or made fresh for their next use. */
  readonly starting: number;
  /** Executors that somebody uses. */
  readonly leased: number;
  /** Executors that are being stopped; they count towards `max` until nothing of them is left. */
  readonly ending: number;
  /** Callers that wait for one. */
  readonly waiting: number;
}
