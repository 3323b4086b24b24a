/** The current number of sessions and runs. */
export interface SessionCounts {
  /** Sessions that have started and not ended, whether or not anything is running in them. */
  readonly open: number;
  /** Sessions that are starting. */
  readonly starting: number;
  /** Sessions that are ending; they count towards `maxSessions` until they are gone. */
  readonly ending: number;
  /** Sessions in which something is running. */
  readonly running: number;
  /** Runs that are waiting for their turn. */
  readonly waiting: number;
}
