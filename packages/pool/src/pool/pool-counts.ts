/** The current number of a pool's executors and waiting callers. */
export interface PoolCounts {
  /** Executors ready for a caller. */
  readonly ready: number;
  /** Executors being created, started, warmed up, or reset for their next use. */
  readonly starting: number;
  /** Executors in use. */
  readonly leased: number;
  /** Executors being stopped; they count towards `max` until they are gone. */
  readonly ending: number;
  /** Callers waiting for an executor. */
  readonly waiting: number;
}
