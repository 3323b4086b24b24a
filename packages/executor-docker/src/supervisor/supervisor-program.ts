import { supervisorBase } from "./supervisor-base.ts";
import { supervisorBlocks } from "./supervisor-blocks.ts";
import { supervisorKilling } from "./supervisor-killing.ts";
import { supervisorLoop } from "./supervisor-loop.ts";

/**
 * The program that starts and ends blocks inside a container, for any Python from 3.8, with the standard library only.
 * Its arguments are those of `supervisorCommand`; it speaks the frames of `channel/frames.ts` over its standard streams.
 * It imports little, and `signal` and `collections` only by their cores: what Python loads, the start waits for.
 *
 * Each block gets a shepherd: a fork of this program that is the "subreaper" of all that the block starts. Whatever
 * loses its parent becomes the shepherd's child, so the tree below it is the block, however its processes hide, and the
 * shepherd's end says that all of it is dead. A block is killed by stopping all of its processes first, so that none
 * can start another one meanwhile.
 */
export const supervisorProgram: string = [supervisorBase, supervisorBlocks, supervisorKilling, supervisorLoop].join(
  "\n\n",
);
