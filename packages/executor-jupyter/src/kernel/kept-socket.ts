import { JsonLimitError } from "@fenced/core";
import { PlaceGone } from "@fenced/executor-kit";
import type { SessionLink } from "@fenced/executor-kit/supervisor";
import type { IMessage } from "@jupyterlab/services/lib/kernel/messages.js";
import { serialize } from "@jupyterlab/services/lib/kernel/serialize.js";
import { longestMessage, type MessageSocket, type SocketEvents } from "./kernel-socket.ts";
import { createRequest, decodeMessage, partsProtocol } from "./wire-message.ts";

/** After how many bytes of output that were taken the helper is told. */
const tellBytes = 524_288;
/** Bytes of output that are held at most. The helper sends fewer, unless code has changed it. */
const mostHeld = 2 * longestMessage;

/**
 * Carries a kernel's messages over the stream of a session that outlives its connections: each is preceded by its length, in
 * 4 bytes. The helper lets the code wait while 4 MiB of output have not been taken.
 */
export class KeptSocket implements MessageSocket {
  readonly #streams: SessionLink["streams"];
  readonly #events: SocketEvents;
  #pieces: Buffer[] = [];
  #length = 0;
  /** Bytes still to be skipped of a message that is too long. */
  #skip = 0;
  #received = 0;
  #taken = 0;
  #told = 0;
  #isClosed = false;
  readonly #broken: (error?: Error) => void;

  constructor({ streams }: SessionLink, events: SocketEvents) {
    this.#streams = streams;
    this.#events = events;
    const broken = (error?: Error): void => {
      if (this.#isClosed) return;
      this.#isClosed = true;
      events.onBroken(error ?? new PlaceGone("the session has ended"));
    };
    this.#broken = broken;
    streams.stdout.on("data", (bytes: Buffer) => this.#push(bytes));
    streams.stdout.on("error", broken).on("end", broken).on("close", broken);
    // It may be lost already.
    if (streams.stdout.destroyed) broken(streams.stdout.errored ?? undefined);
  }

  send(message: IMessage): boolean {
    if (this.#isClosed) return false;
    const data = serialize(message, partsProtocol);
    const bytes = typeof data === "string" ? Buffer.from(data) : Buffer.from(data);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    this.#streams.stdin.write(Buffer.concat([length, bytes]));
    return true;
  }

  // The helper stops sending by itself.
  pause(): void {}
  resume(): void {}

  taken(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken - this.#told < tellBytes || this.#isClosed) return;
    this.#told = this.#taken;
    this.send(createRequest("fenced_taken", "control", "", { taken: this.#taken }));
  }

  close(): void {
    this.#isClosed = true;
  }

  #push(chunk: Buffer): void {
    this.#pieces.push(chunk);
    this.#length += chunk.length;
    while (!this.#isClosed) {
      if (this.#skip > 0) this.#skip -= this.#take(Math.min(this.#skip, this.#length)).length;
      if (this.#skip > 0 || this.#length < 4) return;
      const size = this.#peek(4).readUInt32BE(0);
      if (size > longestMessage) {
        this.#events.onTooLong();
        this.#take(4);
        this.#skip = size;
        // Only output can be that long.
        this.taken(size);
      } else {
        if (this.#length < size + 4) return;
        this.#receive(this.#take(size + 4).subarray(4));
      }
    }
  }

  #receive(bytes: Buffer): void {
    const isOutput = /^(?:iopub|stdin)$/.test(channelOf(bytes));
    const count = isOutput ? bytes.length : 0;
    this.#received += count;
    if (this.#received - this.#taken > mostHeld) {
      this.#broken(new PlaceGone("code in the kernel sent more output than there was room for"));
      this.#streams.stdin.destroy();
      return;
    }
    let message: IMessage | undefined;
    try {
      // A copy: the decoder takes all of its memory.
      message = decodeMessage(new Uint8Array(bytes).buffer, true, partsProtocol);
    } catch (error) {
      if (!(error instanceof JsonLimitError)) throw error;
      this.#events.onTooLong();
    }
    if (message) this.#events.onMessage(message, count);
    else this.taken(count);
  }

  #take(size: number): Buffer {
    const taken = this.#peek(size).subarray(0, size);
    const [first = taken] = this.#pieces;
    this.#pieces[0] = first.subarray(size);
    this.#length -= size;
    return taken;
  }

  /** The first piece, made at least so long. */
  #peek(size: number): Buffer {
    const [first] = this.#pieces;
    if (first && first.length >= size) return first;
    const whole = Buffer.concat(this.#pieces);
    this.#pieces = [whole];
    return whole;
  }
}

/** The channel of a message; empty if it is not valid. */
function channelOf(bytes: Buffer): string {
  if (bytes.length < 24) return "";
  const [start, end] = [Number(bytes.readBigUInt64LE(8)), Number(bytes.readBigUInt64LE(16))];
  return end - start > 10 ? "" : bytes.toString("latin1", start, end);
}
