/**
 * What the blocks of a run used. A figure is absent if it is not known of each of them: it is never a guess. Code cannot change
 * what its own processes are found to have used, but it can keep processes out of that: those that it leaves running, or for
 * which nobody waits.
 */
export interface RunUsage {
  /**
   * Processor time in milliseconds, summed over all processors, blocks and their processes that had ended when the block did;
   * of a kept interpreter, what the block added.
   */
  readonly processorMs?: number;
  /**
   * The most memory that any one process had in use at a time, in bytes, with what it shares with others. A process begins as a
   * copy of the one that starts it, so a block that does nothing is found to use some, too.
   */
  readonly peakMemoryBytes?: number;
  /**
   * Bytes that the proxy of the executor's network policy received from hosts while the blocks ran, and those that it sent to
   * them, as the network carries them: with what TLS adds. They include those of other calls and programs that ran at the same
   * time. Absent without a policy that lists hosts.
   */
  readonly receivedBytes?: number;
  readonly sentBytes?: number;
}

/** A figure of `RunUsage`. */
export type RunUsageFigure = keyof RunUsage;
