import { JsonLimitError } from "@fenced/core";
import { errorCode } from "@fenced/executor-kit";
import { longestDisplay } from "@fenced/executor-kit/displays";
import { supportedKernelWebSocketProtocols, type IMessage } from "@jupyterlab/services/lib/kernel/messages.js";
import { serialize } from "@jupyterlab/services/lib/kernel/serialize.js";
import { WebSocket, type ClientOptions } from "ws";
import type { ServerAddress } from "../servers/server-settings.ts";
import { decodeMessage } from "./wire-message.ts";

/**
 * The longest message, in bytes: a display, and room for its headers. The server itself sets no limit, and this process
 * would hold and parse all of it at once.
 */
export const longestMessage: number = longestDisplay + 1_048_576;

/** Events of a connection to a kernel. */
export interface SocketEvents {
  /** @param bytes - call `taken` with this number once they are no longer held. */
  readonly onMessage: (message: IMessage, bytes: number) => void;
  /** A message was too long, which breaks the connection, or had too many values. */
  readonly onTooLong: () => void;
  /** The open connection was closed from elsewhere. */
  readonly onBroken: (error: Error) => void;
}

/** A connection to a kernel. */
export interface MessageSocket {
  /** @returns false if it is not open, and the message was not sent. */
  send(message: IMessage): boolean;
  /** Stops reading. */
  pause(): void;
  resume(): void;
  /** So many bytes are no longer held. */
  taken(bytes: number): void;
  close(): void;
}

/** Where and how to connect. */
export interface SocketSettings {
  readonly address: ServerAddress;
  /** Relative to the server's address. */
  readonly path: string;
  /** Milliseconds for the handshake. */
  readonly timeoutMs: number;
  /** Aborts the handshake. */
  readonly signal?: AbortSignal;
}

/** One WebSocket to a kernel's channels. The token goes in a header, never into the address. */
export class KernelSocket implements MessageSocket {
  readonly #socket: WebSocket;
  #opened = false;
  #closing = false;

  private constructor(socket: WebSocket, events: SocketEvents) {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.on("message", (data, isBinary) => {
      if (Array.isArray(data)) return;
      hurryServer(socket);
      try {
        const message = decodeMessage(data, isBinary, socket.protocol);
        if (message) events.onMessage(message, data.byteLength);
      } catch (error) {
        if (!(error instanceof JsonLimitError)) throw error;
        // Only this message is lost; if it was a reply, the watch over the kernel notices that it is missing.
        events.onTooLong();
      }
    });
    socket.on("close", () => {
      if (this.#opened && !this.#closing) events.onBroken(new Error("the server closed the connection"));
    });
    socket.on("error", (error) => {
      if (errorCode(error) !== "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH") return;
      events.onTooLong();
      socket.terminate();
    });
  }

  /** @throws Error if the server does not accept the connection. */
  static async open({ address, path, timeoutMs, signal }: SocketSettings, events: SocketEvents): Promise<KernelSocket> {
    const url = new URL(path, address.baseUrl);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const options: ClientOptions = {
      headers: { ...address.headers },
      handshakeTimeout: timeoutMs,
      maxPayload: longestMessage,
      perMessageDeflate: false,
      ...(address.ca ? { ca: [...address.ca] } : {}),
    };
    const protocols = address.legacyWebSocket ? [] : Object.values(supportedKernelWebSocketProtocols);
    const socket = new WebSocket(url, protocols, options);
    const opened = new KernelSocket(socket, events);
    const abort = (): void => socket.terminate();
    signal?.addEventListener("abort", abort, { once: true });
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once("open", () => {
          opened.#opened = true;
          resolve();
        });
        socket.once("error", reject);
        socket.once("close", () => reject(new Error("the server closed the connection")));
      });
    } catch (error) {
      opened.close();
      throw error;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
    return opened;
  }

  /** @returns false if it is not open, and the message was not sent. */
  send(message: IMessage): boolean {
    if (this.#socket.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(serialize(message, this.#socket.protocol));
    return true;
  }

  /** Stops reading, so that the server waits. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** The server keeps what does not fit: there is nothing to tell it. */
  taken(): void {}

  close(): void {
    this.#closing = true;
    // With a server that does not answer, a clean close would take half a minute and keep Node alive.
    this.#socket.terminate();
  }
}

/**
 * Sends an empty frame, which carries the acknowledgement of received data. Jupyter servers leave Nagle's algorithm
 * on: they hold a small message back until the previous one is acknowledged, which this system would delay by 40 ms.
 */
function hurryServer(socket: WebSocket): void {
  if (socket.readyState === WebSocket.OPEN) socket.pong();
}
