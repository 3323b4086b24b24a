import type { LeftProgram, ProgramControls } from "../../run/block-run.ts";
import type { OutputPiece, Sink } from "../../run/sink.ts";
import { frameType } from "../wire/wire.ts";
import type { Send } from "./running-programs.ts";
import type { ProgramEnd } from "./supervised-program.ts";

/** What precedes the label. */
const headBytes = 9;
/** More than a supervisor keeps, and than it can run; and more bytes than their labels have. */
const [mostPrograms, mostBytes] = [65_536, 67_108_864];

/** What can be done with a program that an earlier host has started, by its number. */
interface ProgramAccess {
  readonly controls: (number: number, pid: number) => ProgramControls;
  readonly follow: (
    number: number,
    sink: Sink<OutputPiece>,
    stdin: AsyncIterable<Uint8Array> | undefined,
  ) => Promise<ProgramEnd>;
}

/** One of them. */
export interface SupervisedLeftProgram extends Omit<LeftProgram, "follow"> {
  readonly follow: (sink: Sink<OutputPiece>, stdin?: AsyncIterable<Uint8Array>) => Promise<ProgramEnd>;
}

/** A caller that waits for the list. */
interface Listing {
  readonly programs: SupervisedLeftProgram[];
  bytes: number;
  readonly resolve: (programs: readonly SupervisedLeftProgram[]) => void;
  readonly reject: (error: Error) => void;
}

/** Programs alongside blocks that earlier hosts of a supervisor have started. */
export class LeftPrograms {
  readonly #send: Send;
  readonly #access: ProgramAccess;
  readonly #listings: Listing[] = [];

  constructor(send: Send, access: ProgramAccess) {
    this.#send = send;
    this.#access = access;
  }

  list(): Promise<readonly SupervisedLeftProgram[]> {
    return new Promise((resolve, reject) => {
      this.#listings.push({ programs: [], bytes: 0, resolve, reject });
      this.#send(frameType.programs, 0);
    });
  }

  /**
   * Handles one of them, or the end of the list.
   *
   * @throws Error if it is not one.
   */
  report(number: number, payload: Buffer): void {
    const [listing] = this.#listings;
    if (!listing) return;
    if (payload.length === 0) {
      this.#listings.shift();
      listing.resolve(listing.programs);
      return;
    }
    listing.bytes += payload.length;
    if (listing.programs.length >= mostPrograms || listing.bytes > mostBytes) {
      throw new Error("the supervisor lists too many programs");
    }
    listing.programs.push(this.#read(number, payload));
  }

  fail(error: Error): void {
    for (const { reject } of this.#listings.splice(0)) reject(error);
  }

  #read(number: number, payload: Buffer): SupervisedLeftProgram {
    const { controls, follow } = this.#access;
    const pid = payload.readUInt32BE(0);
    const code = payload.readInt32BE(4);
    const flags = payload.readUInt8(8);
    return {
      pid,
      label: payload.subarray(headBytes).toString(),
      takesInput: (flags & 2) !== 0,
      hasTerminal: (flags & 4) !== 0,
      ...((flags & 1) !== 0 && { exitCode: code < 0 ? 137 : code }),
      controls: controls(number, pid),
      follow: (sink, stdin) => follow(number, sink, stdin),
    };
  }
}
