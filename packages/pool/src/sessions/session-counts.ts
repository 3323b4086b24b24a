/** How many sessions and runs there are now. */
export interface SessionCounts {
  /** Sessions that are there, started and not ended, whether or not something runs in them. */
  readonly open: number;
  /** Sessions that are being started. */
  readonly starting: number;
  /** Sessions that are being ended; they count towards `maxSessions` until nothing of them is left. */
  readonly ending: number;
  /** Sessions in which something runs. */
  readonly running: number;
  /** Runs that wait for their turn. */
  readonly waiting: number;
}
