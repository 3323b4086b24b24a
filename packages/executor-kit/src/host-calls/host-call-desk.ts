import type { Duplex } from "node:stream";
import { encodeFrame } from "../supervisor/wire/wire.ts";
import { BlockCalls, type BlockCallSettings } from "./block-calls.ts";
import { callFrame, readCallFrames } from "./call-frames.ts";

/** Maximum number of connections that have not identified themselves. */
const mostStrangers = 64;
/** Time limit for a connection to identify itself in milliseconds. */
const greetingMs = 10_000;

/** Admits programs that present a block's token, and connects them to the block's calls. */
export class HostCallDesk {
  readonly #blocks = new Map<string, BlockCalls>();
  readonly #strangers = new Set<Duplex>();
  /** Compared with tokens that match no block, so that a wrong token takes as long to check as a right one. */
  readonly #nobody: BlockCalls;

  constructor(settings: Pick<BlockCallSettings, "telemetry">) {
    const sink = { signal: AbortSignal.abort(), write: () => undefined };
    this.#nobody = new BlockCalls({
      ...settings,
      functions: new Map(),
      approve: undefined,
      maxCalls: 0,
      index: 0,
      sink,
    });
    this.#nobody.close();
  }

  /** Opens the calls of one block; close them when it ends. */
  open(settings: BlockCallSettings): BlockCalls {
    const calls = new BlockCalls(settings);
    this.#blocks.set(calls.id, calls);
    return calls;
  }

  /** Stops answering the block's calls. */
  close(calls: BlockCalls): void {
    this.#blocks.delete(calls.id);
    calls.close();
  }

  /** Accepts a connection from a place where blocks run; never throws. */
  accept(connection: Duplex): void {
    connection.on("error", () => {});
    if (this.#strangers.size >= mostStrangers) {
      connection.destroy();
      return;
    }
    this.#strangers.add(connection);
    const late = setTimeout(() => connection.destroy(), greetingMs);
    const known = (): void => {
      clearTimeout(late);
      this.#strangers.delete(connection);
    };
    connection.once("close", known);
    void this.#serve(connection, known).catch(() => {
      // It broke, or carried something that no stub would send.
      connection.destroy();
    });
  }

  async #serve(connection: Duplex, known: () => void): Promise<void> {
    const frames = readCallFrames(connection);
    const { value: first, done } = await frames.next();
    const token = done === true || first.type !== callFrame.hello ? "" : first.payload.toString();
    const [id = "", secret = ""] = token.split(".");
    const calls = this.#blocks.get(id);
    if ((calls ?? this.#nobody).knows(secret) && calls) {
      known();
      await calls.serve(connection, frames);
      connection.destroy();
    } else {
      const message = "This is not a block that may call host functions, or the block has ended";
      const error = JSON.stringify({ name: "NotConnectedError", message });
      connection.end(encodeFrame(callFrame.error, 0, Buffer.from(error)));
    }
  }
}
