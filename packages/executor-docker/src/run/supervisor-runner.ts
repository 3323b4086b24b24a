import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import type { BlockEvent } from "@fenced/executor-kit";
import { BlockOutput } from "../channel/block-output.ts";
import { encodeFrame, frameType, hostMagic } from "../channel/frames.ts";
import type { SharedMemory } from "../channel/read-buffers.ts";
import { answered } from "../daemon/docker-error.ts";
import type { BlockCommand, BlockRunner, CommandEnd, ContainerInventory } from "./block-runner.ts";

/** Bytes of a block's output that may be on their way before the program is made to wait. */
const windowBytes = 524_288;
/** The supervisor sends more than the window only when a block ends: what its two pipes still held. */
const mostWaiting = windowBytes + 4_194_304;
const inputPiece = 262_144;
/** How long a block may take to die, in milliseconds. */
const killMs = 10_000;

/** How a block ended, as the supervisor says it. */
interface ExitReport {
  /** `undefined`: nobody knows, since something killed its shepherd. */
  readonly exitCode: number | undefined;
  readonly outOfMemory: boolean;
  /** Why it could not be started; empty if it was. */
  readonly problem: string;
}

/** Runs blocks through the supervisor in the container, over one stream for all of them. */
export class SupervisorRunner implements BlockRunner {
  readonly inventory: ContainerInventory;
  readonly direct: boolean;
  readonly #stream: Duplex;
  readonly #lose: (error: Error) => void;
  readonly #blocks = new Map<number, BlockOutput<ExitReport>>();
  readonly #resets: { resolve: () => void; reject: (error: Error) => void }[] = [];
  #lost: Error | undefined;
  #last = 0;

  /**
   * @param stream - to the supervisor.
   * @param channel - whether the stream bypasses the daemon, and who is told that the container cannot be used any more.
   */
  constructor(
    stream: Duplex,
    inventory: ContainerInventory,
    { direct, lose }: { readonly direct: boolean; readonly lose: (error: Error) => void },
  ) {
    this.direct = direct;
    this.#stream = stream;
    this.inventory = inventory;
    this.#lose = lose;
    stream.write(hostMagic);
  }

  /** Takes a piece of a block's output. */
  output(type: "stdout" | "stderr", number: number, bytes: Buffer, memory?: SharedMemory): void {
    const block = this.#blocks.get(number);
    block?.push(type, bytes, memory);
    if (block && block.waiting > mostWaiting) throw new Error("the supervisor in the container sends more than it may");
  }

  /** Takes a report of the supervisor. */
  report(type: number, number: number, payload: Buffer): void {
    if (type === frameType.done) this.#resets.shift()?.resolve();
    else if (type === frameType.exit) this.#blocks.get(number)?.end(readExit(payload));
  }

  async *run(command: BlockCommand): AsyncGenerator<BlockEvent, CommandEnd, void> {
    if (this.#lost) throw this.#lost;
    const number = (this.#last = (this.#last % 0xffff_fffe) + 1);
    const block = new BlockOutput<ExitReport>();
    this.#blocks.set(number, block);
    let killed: NodeJS.Timeout | undefined;
    const kill = (): void => {
      this.#send(frameType.kill, number);
      killed ??= setTimeout(() => this.#lose(notEnded()), killMs);
    };
    this.#start(number, command);
    command.signal.addEventListener("abort", kill, { once: true });
    if (command.signal.aborted) kill();
    try {
      return endOf(yield* block.events(this.#creditor(number)));
    } finally {
      clearTimeout(killed);
      command.signal.removeEventListener("abort", kill);
      this.#blocks.delete(number);
    }
  }

  async reset(): Promise<void> {
    if (this.#lost) throw this.#lost;
    const done = new Promise<void>((resolve, reject) => {
      this.#resets.push({ resolve, reject });
    });
    this.#send(frameType.reset, 0);
    await answered(done, "ending all processes of the container", killMs);
  }

  fail(error: Error): void {
    if (this.#lost) return;
    this.#lost = error;
    for (const block of this.#blocks.values()) block.fail(error);
    for (const { reject } of this.#resets.splice(0)) reject(error);
  }

  #start(number: number, { argv, env, stdin }: BlockCommand): void {
    if (stdin !== undefined) {
      const bytes = Buffer.from(stdin);
      for (let start = 0; start < bytes.length || start === 0; start += inputPiece) {
        this.#send(frameType.input, number, bytes.subarray(start, start + inputPiece));
      }
    }
    // By the mark the supervisor finds what has escaped from the tree of processes.
    const mark = `FENCED_BLOCK=${randomUUID()}`;
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const fields = [mark, windowBytes, argv.length, ...argv, ...variables, mark];
    this.#send(frameType.run, number, Buffer.from(fields.join("\0")));
  }

  #creditor(number: number): (bytes: number) => void {
    let taken = 0;
    return (bytes) => {
      taken += bytes;
      if (taken < windowBytes / 4) return;
      const credit = Buffer.alloc(4);
      credit.writeUInt32BE(taken);
      taken = 0;
      this.#send(frameType.credit, number, credit);
    };
  }

  #send(type: number, number: number, payload?: Uint8Array): void {
    if (!this.#lost && this.#stream.writable) this.#stream.write(encodeFrame(type, number, payload));
  }
}

function readExit(payload: Buffer): ExitReport {
  const code = payload.readInt32BE(0);
  return {
    exitCode: code < 0 ? undefined : code,
    outOfMemory: payload.readUInt8(4) === 1,
    problem: payload.subarray(6).toString(),
  };
}

function endOf({ exitCode = 137, outOfMemory, problem }: ExitReport): CommandEnd {
  if (problem !== "") {
    throw new BackendUnavailableError(problem, {
      remedy: "Call restart(), which ends all processes in the container, or raise `pidsLimit` or `memoryBytes`.",
    });
  }
  return { exitCode, outOfMemory: exitCode === 137 && outOfMemory };
}

function notEnded(): BackendUnavailableError {
  return new BackendUnavailableError(`A block did not end within ${killMs / 1000} s after it was killed`, {
    remedy: "Call again: that uses a new container.",
  });
}
