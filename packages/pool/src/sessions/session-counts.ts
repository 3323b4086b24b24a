/** The current number of sessions and runs. */
export interface SessionCounts {
  /** Sessions that are started and not ended, whether or not something runs in them. */
  readonly open: number;
  /** Sessions that are starting. */
  readonly starting: number;
  /** Sessions that are ending; they count towards `maxSessions` until they are gone. */
  readonly ending: number;
  /** Sessions in which something is running. */
  readonly running: number;
  /** Runs that wait for their turn. */
  readonly waiting: number;
}
