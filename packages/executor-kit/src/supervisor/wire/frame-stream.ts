import type { Writable } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import { encodeFrame, encodeHeader, headerSize } from "./wire.ts";

/** Bytes for tunnels that a supervisor may leave unread; an honest one never gets that far behind. */
const mostUnread = 1_048_576;

interface FrameStreamSettings {
  /** Called when there is room again. */
  readonly drained: () => void;
  /** Called when the other side has stopped reading. */
  readonly lose: (error: Error) => void;
}

/** Sends frames to a supervisor. */
export class FrameStream {
  readonly #stream: Writable;
  readonly #lose: (error: Error) => void;
  /** Bytes sent for tunnels since the stream last had room. */
  #unread = 0;
  #closed = false;

  constructor(stream: Writable, { drained, lose }: FrameStreamSettings) {
    this.#stream = stream;
    this.#lose = lose;
    stream.on("drain", () => {
      this.#unread = 0;
      drained();
    });
  }

  send(type: number, number: number, payload?: Uint8Array): void {
    if (this.#isOpen) this.#stream.write(encodeFrame(type, number, payload));
  }

  /**
   * Returns whether there is room for more. Tunnels wait for room; their other messages are small unless somebody
   * provokes them.
   */
  sendThrough(type: number, number: number, payload?: Uint8Array): boolean {
    if (!this.#isOpen) return true;
    const frame = encodeFrame(type, number, payload);
    return this.#counted(this.#stream.write(frame), frame.length);
  }

  /** Like `sendThrough`; the stream writes the payload from where it is. */
  sendPiece(type: number, number: number, payload: Uint8Array, sent: () => void): boolean {
    if (!this.#isOpen) {
      sent();
      return true;
    }
    this.#stream.cork();
    this.#stream.write(encodeHeader(type, number, payload.length));
    const room = this.#stream.write(payload, () => sent());
    this.#stream.uncork();
    return this.#counted(room, headerSize + payload.length);
  }

  /** Sends nothing more. */
  close(): void {
    this.#closed = true;
  }

  get #isOpen(): boolean {
    return !this.#closed && this.#stream.writable;
  }

  #counted(room: boolean, bytes: number): boolean {
    this.#unread = room ? 0 : this.#unread + bytes;
    if (this.#unread > mostUnread) this.#lose(notRead());
    return room;
  }
}

function notRead(): BackendUnavailableError {
  return new BackendUnavailableError("The supervisor has stopped reading", {
    remedy: "Call again to start a new one.",
  });
}
