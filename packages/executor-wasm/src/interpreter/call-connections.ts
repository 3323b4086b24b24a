import { Duplex } from "node:stream";
import * as z from "zod";
import type { Answer } from "../files/file-requests.ts";

/** The address of the host functions, which only the interpreter's process understands. */
export const hostCallsPath = "/dev/host-functions";

/** Maximum number of connections that the host accepts from one block. */
const mostConnections = 64;
const connection = z.int().nonnegative();

/** Everything that an interpreter may ask about connections. */
const request = z.discriminatedUnion("op", [
  z.object({ op: z.literal("dial"), address: z.string().max(256) }),
  z.object({ op: z.enum(["send", "hang up"]), connection }),
  z.object({ op: z.literal("wait"), milliseconds: z.number().min(0).max(86_400_000).exactOptional() }),
]);

/**
 * The connections of an interpreter's programs to host functions. They have no sockets: data travels in requests.
 */
export class CallConnections {
  readonly #accept: ((connection: Duplex) => void) | undefined;
  readonly #open = new Map<number, ProgramConnection>();
  #last = 0;
  #wake: () => void = () => {};

  /** @param accept - receives the connections that programs open; without it, they are refused. */
  constructor(accept: ((connection: Duplex) => void) | undefined) {
    this.#accept = accept;
  }

  /** Answers a request; `undefined` if it is about something else. */
  answer(fields: unknown, bytes: Uint8Array): Promise<Answer> | undefined {
    const asked = request.safeParse(fields);
    if (!asked.success) return undefined;
    switch (asked.data.op) {
      case "dial":
        return Promise.resolve(this.#dial(asked.data.address));
      case "send":
        return this.#send(asked.data.connection, bytes);
      case "hang up":
        this.#open.get(asked.data.connection)?.destroy();
        this.#open.delete(asked.data.connection);
        return Promise.resolve({ fields: {} });
      default:
        return this.#wait(asked.data.milliseconds);
    }
  }

  /** Ends all connections, because the block that opened them, or its interpreter, has ended. */
  end(): void {
    for (const each of this.#open.values()) each.destroy();
    this.#open.clear();
    this.#wake();
  }

  #dial(address: string): Answer {
    if (!this.#accept || address !== hostCallsPath || this.#open.size >= mostConnections) {
      return { fields: { error: "ECONNREFUSED" } };
    }
    this.#last += 1;
    const opened = new ProgramConnection(() => this.#wake());
    this.#open.set(this.#last, opened);
    this.#accept(opened);
    return { fields: { connection: this.#last } };
  }

  async #send(number: number, bytes: Uint8Array): Promise<Answer> {
    const found = this.#open.get(number);
    if (!found || found.destroyed) return { fields: { error: "EPIPE" } };
    await found.deliver(Buffer.from(bytes));
    return { fields: {} };
  }

  /** Waits until the host has sent something or hung up, or the time is up. */
  async #wait(milliseconds: number | undefined): Promise<Answer> {
    const found = this.#next();
    if (found) return found;
    if (milliseconds === undefined && this.#open.size === 0) return { fields: { error: "EDEADLK" } };
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (milliseconds !== undefined) timer = setTimeout(resolve, milliseconds);
    });
    clearTimeout(timer);
    this.#wake = () => {};
    return this.#next() ?? { fields: {} };
  }

  #next(): Answer | undefined {
    for (const [number, each] of this.#open) {
      const bytes = each.collect();
      if (bytes) return { fields: { connection: number }, bytes };
      if (each.destroyed) {
        this.#open.delete(number);
        return { fields: { connection: number, closed: true } };
      }
    }
    return undefined;
  }
}

/** One connection, as the host functions see it. */
class ProgramConnection extends Duplex {
  readonly #arrived: () => void;
  #sent: { readonly bytes: Buffer; readonly taken: () => void } | undefined;
  #room: () => void = () => {};

  /** @param arrived - called when there is something for the program, or it has ended. */
  constructor(arrived: () => void) {
    super();
    this.#arrived = arrived;
    this.on("error", () => {});
  }

  /** Passes on what the program sent; waits while the host does not read. */
  async deliver(bytes: Buffer): Promise<void> {
    if (this.push(bytes) || this.destroyed) return;
    await new Promise<void>((resolve) => {
      this.#room = resolve;
    });
  }

  /** What the host has sent, in the pieces in which it was written. */
  collect(): Buffer | undefined {
    const sent = this.#sent;
    this.#sent = undefined;
    sent?.taken();
    return sent?.bytes;
  }

  override _read(): void {
    this.#room();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, taken: () => void): void {
    this.#sent = { bytes, taken };
    this.#arrived();
  }

  override _final(done: () => void): void {
    // Nothing follows: for the program, the connection has ended.
    done();
    this.destroy();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#room();
    done(error);
    this.#arrived();
  }
}
