import type { Duplex } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import { within } from "@fenced/core/abort";
import { encodeFrame, FrameReader, Tunnels } from "@fenced/executor-kit/supervisor";
import type { IMessage } from "@jupyterlab/services/lib/kernel/messages.js";
import { field, textField } from "../fields.ts";
import type { Kernel } from "./kernel.ts";

/** Milliseconds within which the helper must open its socket. */
const openingMs = 30_000;
/** Messages that may be in flight in each direction; each side acknowledges after half of them. */
const mostMessages = 16;
/** Bytes in one message, unless a single frame has more: servers refuse messages of 10 MB. */
const longestMessage = 2_097_152;
/** Frames that may queue for a kernel that accepts none. The connections' windows limit their bytes. */
const mostFrames = 65_536;

/**
 * Carries connections of a kernel's programs in frames over its control channel. Code may have changed the helper, so
 * its messages are not trusted: a message out of turn, or one without frames, ends all connections and nothing else.
 */
export class CallBridge {
  readonly kernel: Kernel;
  readonly #accept: (connection: Duplex) => void;
  /** Messages of an earlier generation belong to connections that have ended. */
  #generation = 0;
  #tunnels: Tunnels | undefined;
  #reader: FrameReader | undefined;
  #outgoing: Buffer[] = [];
  /** Messages sent, and how many of them the helper has taken. */
  #sent = 0;
  #arrived = 0;
  /** Messages received, and how many of them were acknowledged to the helper. */
  #taken = 0;
  #told = 0;

  /** @param accept - receives each connection. */
  constructor(kernel: Kernel, accept: (connection: Duplex) => void) {
    this.kernel = kernel;
    this.#accept = accept;
    kernel.takeFrames({
      onFrames: (message) => this.#take(message),
      // A call or an answer in flight may be lost: programs get an error, and can call again.
      onReconnected: () => void this.#begin().catch(() => {}),
      onLost: () => this.#end("the kernel is gone"),
    });
  }

  /** Whether programs can connect. */
  get isOpen(): boolean {
    return this.#tunnels !== undefined;
  }

  /**
   * Asks the helper to open its socket, or to start over.
   *
   * @returns the socket's address, as programs there use it.
   * @throws BackendUnavailableError if that is impossible there, or the kernel does not answer.
   */
  async open(): Promise<string> {
    const address = await within(openingMs, this.#begin());
    if (address !== undefined) return address;
    this.#end("the kernel does not answer");
    throw new BackendUnavailableError(`The kernel has not answered for ${openingMs} ms (calls)`, {
      remedy: "It may be busy in native code, or stopped: call again later, or call `restart()` for a new kernel.",
    });
  }

  #begin(): Promise<string> {
    this.#end("the connection to the kernel broke");
    this.#generation += 1;
    this.#sent = this.#arrived = this.#taken = this.#told = 0;
    this.#outgoing = [];
    const tunnels = new Tunnels((type, number, payload) => {
      this.#send(tunnels, encodeFrame(type, number, payload));
      // The connections' windows and the number of frames limit what is queued.
      return true;
    });
    this.#tunnels = tunnels;
    this.#reader = new FrameReader({
      output: () => {
        throw new Error("it sent an invalid frame");
      },
      report: (type, number, payload) => tunnels.report(type, number, payload),
    });
    return tunnels.openCalls(this.#accept);
  }

  /** Ends all connections. Accepts nothing more until the next start. */
  #end(reason: string): void {
    const tunnels = this.#tunnels;
    this.#tunnels = this.#reader = undefined;
    tunnels?.fail(
      new BackendUnavailableError(`Code in the kernel cannot call host functions: ${reason}`, {
        remedy: "Call `restart()` for a new kernel.",
      }),
    );
  }

  #take({ content, buffers }: IMessage): void {
    const reason = textField(content, "reason");
    if (reason !== "") this.#end(reason.slice(0, 1000));
    if (!this.#reader || field(content, "generation") !== this.#generation) return;
    const pieces = buffers ?? [];
    if (pieces.length > 0) this.#taken += 1;
    try {
      this.#arrived = this.#countOf(content);
      if (this.#taken > this.#told + mostMessages) throw new Error("it sent a message that was not requested");
      for (const piece of pieces) this.#reader.push(bytesOf(piece));
    } catch {
      this.#end("something other than the helper answered");
    }
    this.#sendSoon();
  }

  #countOf(content: unknown): number {
    const count = field(content, "taken");
    if (typeof count === "number" && count >= this.#arrived && count <= this.#sent) return count;
    throw new Error("it acknowledged more messages than were sent");
  }

  #send(sender: Tunnels, frame: Buffer): void {
    if (sender !== this.#tunnels) return;
    this.#outgoing.push(frame);
    if (this.#outgoing.length > mostFrames) this.#end("the kernel accepts no answers");
    this.#sendSoon();
  }

  /** Waits one turn of the event loop, so that answers of fast functions travel in the same message. */
  #sendSoon(): void {
    setImmediate(() => this.#flush());
  }

  /** Sends queued frames, but no more messages than the helper has room for. Bare acknowledgements do not count. */
  #flush(): void {
    while (this.#tunnels) {
      const frames = this.#sent - this.#arrived < mostMessages ? this.#nextFrames() : [];
      if (frames.length === 0 && this.#taken - this.#told < mostMessages / 2) return;
      if (frames.length > 0) this.#sent += 1;
      this.#told = this.#taken;
      const content = { generation: this.#generation, taken: this.#taken };
      this.kernel.sendFrames(content, frames.length > 0 ? [Buffer.concat(frames)] : []);
    }
  }

  #nextFrames(): Buffer[] {
    let [count, bytes] = [0, 0];
    for (const { length } of this.#outgoing) {
      if (count > 0 && bytes + length > longestMessage) break;
      [count, bytes] = [count + 1, bytes + length];
    }
    return this.#outgoing.splice(0, count);
  }
}

function bytesOf(piece: ArrayBuffer | ArrayBufferView): Buffer {
  return ArrayBuffer.isView(piece) ? Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength) : Buffer.from(piece);
}
