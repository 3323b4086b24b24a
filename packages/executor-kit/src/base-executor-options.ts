import type { FunctionWithRequirements } from "@fenced/core";

/** What every executor can be told; an executor's own options extend it. */
export interface BaseExecutorOptions {
  /** Milliseconds that each block may take. `Infinity`: no limit. Default: 60,000. */
  readonly timeoutMs?: number;
  /** Bytes of each output stream of a block that a result keeps, head and tail. Default: 1,048,576. */
  readonly maxOutputBytes?: number;
  /** Environment variables of the blocks. */
  readonly env?: Readonly<Record<string, string>>;
  /** Functions that blocks can import. */
  readonly functions?: readonly FunctionWithRequirements[];
  /** The module from which blocks import the functions: an identifier. Default: `functions`. */
  readonly functionsModule?: string;
}
