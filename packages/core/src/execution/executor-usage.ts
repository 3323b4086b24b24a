/**
 * What the place of an executor uses at one moment. A value is absent where it cannot be known, or where code could forge it;
 * except in Jupyter, where the kernel itself answers.
 */
export interface ExecutorUsage {
  /** Processor time since the place began, in milliseconds, summed over all processors. The difference of two tells the load. */
  readonly processorMs?: number;
  /** How many processors it may use at the same time; fractions are possible. Absent without a limit. */
  readonly processors?: number;
  /** Memory in use in bytes, without cached files that the system can drop at any time. */
  readonly memoryBytes?: number;
  /** Limit on memory in bytes. Absent without a limit. */
  readonly memoryLimitBytes?: number;
  /** Disk space that the files of the workspace take in bytes, as `maxWorkspaceBytes` counts it. */
  readonly diskBytes?: number;
  /** Number of processes, with those by which the executor runs and watches the code. */
  readonly processes?: number;
}
