import type { BlockEvent, FileOwner } from "@fenced/executor-kit";

/** A program to run in the container as a block. */
export interface BlockCommand {
  readonly argv: readonly string[];
  /** Variables over those of the container. */
  readonly env: Readonly<Record<string, string>>;
  readonly stdin?: string;
  /** Kills everything that the block started. */
  readonly signal: AbortSignal;
}

/** How a block's program ended. */
export interface CommandEnd {
  readonly exitCode: number;
  /** The kernel ended processes of the container for want of memory while the block ran. */
  readonly outOfMemory: boolean;
}

/** What is in the container. */
export interface ContainerInventory {
  /** The programs that were looked for and are there, with their places. */
  readonly programs: ReadonlyMap<string, string>;
  /** Node's answer to `--version`, if it was asked. */
  readonly nodeVersion?: string;
  /** Who blocks run as, in numbers. */
  readonly owner: FileOwner;
  /** The probe file's content as seen in the container, or why it cannot be read or written. */
  readonly probe?: string;
}

/** Starts and ends blocks in one container. */
export interface BlockRunner {
  readonly inventory: ContainerInventory;
  /** It does without the daemon: blocks run on, and end, even if that hangs. */
  readonly direct: boolean;
  /**
   * Runs a program to its end. Children that it leaves running live on.
   *
   * @throws BackendUnavailableError if the container is lost.
   */
  run(command: BlockCommand): AsyncGenerator<BlockEvent, CommandEnd, void>;
  /** Kills everything that blocks left running. */
  reset(): Promise<void>;
  /** Nothing more comes from the container: blocks that run fail with `error`. */
  fail(error: Error): void;
}
