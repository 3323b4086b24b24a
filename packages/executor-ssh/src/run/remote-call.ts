import type { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import { OutputQueue, type BlockEvent } from "@fenced/executor-kit";
import { MarkedStream } from "../connection/marked-stream.ts";
import type { SshConnection } from "../connection/ssh-connection.ts";
import { noSsh } from "../connection/ssh-error.ts";
import type { SshProcess } from "../connection/ssh-process.ts";

/** Content travels in frames of at least this many bytes, except for the last. */
const frameBytes = 1_048_576;

/** How a call ended. */
export type CallEnd =
  | { readonly type: "exit"; readonly code: number }
  /** The request was refused: an error code, and a sentence if the code alone says too little. */
  | { readonly type: "refused"; readonly code: string; readonly text: string }
  /** It ended without a last mark. `said`: what ssh or a login shell said instead. `begun`: the program had started. */
  | { readonly type: "broken"; readonly begun: boolean; readonly said: string };

/** A job for the call program. */
export interface CallRequest {
  /** Names the call within its session. */
  readonly name: string;
  /** What to do, and its arguments. */
  readonly words: readonly string[];
  /** Fails the call when no data has moved for this many milliseconds. Default: no limit. */
  readonly quietMs?: number;
}

/** What is sent to a call. `live`: pieces to pass on as they arrive, until the program closes its input. */
export type Content = AsyncIterable<Uint8Array> | Iterable<Uint8Array> | { readonly live: AsyncIterable<Uint8Array> };

/** One run of the call program on the remote host: its outputs between the marks, and its end. */
export class RemoteCall {
  /** When the end arrived, by `performance.now()`; a slow reader may see it later. */
  endedAt: number | undefined;
  readonly #connection: SshConnection;
  readonly #name: string;
  readonly #process: SshProcess;
  readonly #output = new OutputQueue<CallEnd>();
  #quiet: NodeJS.Timeout | undefined;
  #inputClosed: () => void = () => {};

  constructor(connection: SshConnection, { name, words, quietMs }: CallRequest) {
    this.#connection = connection;
    this.#name = name;
    this.#process = connection.start(name, words);
    if (quietMs !== undefined) this.#quiet = setTimeout(() => this.#whenQuiet(quietMs), quietMs);
    this.#follow();
  }

  /** The program's output, then its end. */
  events(): AsyncGenerator<BlockEvent, CallEnd, void> {
    return this.#output.events();
  }

  /**
   * Sends the contents one after another, each with an end mark that the program waits for, and then ends the input.
   * Does not fail if the program stops reading: its end says why.
   *
   * @throws whatever reading the content throws.
   */
  async send(...contents: readonly Content[]): Promise<void> {
    const { stdin } = this.#process.child;
    try {
      for (const content of contents) {
        // A program that is already running waits for each piece.
        if ("live" in content) stdin.uncork();
        for await (const frame of "live" in content ? this.#liveFrames(content.live) : framesOf(content)) {
          if (!stdin.writable) return;
          this.#quiet?.refresh();
          if (stdin.write(frame)) continue;
          stdin.uncork();
          await drained(stdin);
        }
      }
    } finally {
      stdin.end();
    }
  }

  /** A frame for each piece. Asks for no more once the program has closed its input. */
  async *#liveFrames(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void, void> {
    const iterator: AsyncIterator<Uint8Array, unknown> = pieces[Symbol.asyncIterator]();
    this.#inputClosed = () => void iterator.return?.();
    for (;;) {
      const next = await iterator.next();
      if (next.done === true) break;
      yield frameOf([next.value]);
    }
    yield endFrame;
  }

  /** Call this once everything that was started is dead. Waits a second for the rest of the outputs. */
  async leave(): Promise<void> {
    await sleep(1000, undefined, { ref: false });
    this.#process.kill();
  }

  /** Ends the call at once. */
  fail(error: unknown): void {
    clearTimeout(this.#quiet);
    this.#output.fail(error);
    this.#process.kill();
  }

  #follow(): void {
    const { child, said } = this.#process;
    const { nonce } = this.#connection;
    const marked = { stdout: new MarkedStream(nonce), stderr: new MarkedStream(nonce) };
    let leader: number | undefined;
    const look = (): void => {
      this.#quiet?.refresh();
      if (leader === undefined && marked.stdout.leader !== undefined) {
        leader = marked.stdout.leader;
        this.#connection.tellLeader(this.#name, leader);
      }
      if (marked.stderr.inputClosed) this.#inputClosed();
      if (marked.stdout.ending !== undefined && marked.stderr.ending !== undefined) this.#end(marked.stdout.ending);
    };
    for (const name of ["stdout", "stderr"] as const) {
      this.#output.follow(name, child[name], (bytes) => marked[name].push(bytes));
      child[name].on("data", look);
    }
    child.on("error", (error) => this.fail(noSsh(error)));
    child.on("close", () => {
      clearTimeout(this.#quiet);
      const begun = marked.stdout.begun || marked.stderr.begun;
      this.#output.end({ type: "broken", begun, said: `${marked.stdout.noise}\n${marked.stderr.noise}\n${said()}` });
    });
  }

  #end(words: string): void {
    clearTimeout(this.#quiet);
    this.endedAt ??= performance.now();
    this.#output.end(endOf(words));
    // A background process may hold the outputs open for as long as it lives; do not wait for it.
    this.#process.child.unref();
  }

  /** Code can stop the program, or make it open something that never answers. */
  #whenQuiet(quietMs: number): void {
    const { stdout, stderr } = this.#process.child;
    if (stdout.isPaused() || stderr.isPaused()) {
      this.#quiet = setTimeout(() => this.#whenQuiet(quietMs), quietMs);
      return;
    }
    this.fail(
      new BackendUnavailableError(`The remote host has not sent or received anything for ${quietMs / 1000} s`, {
        remedy: "Check what keeps the host busy. If code has stopped the session's programs there, call stop().",
      }),
    );
    this.#connection.kill(this.#name).catch(() => {});
  }
}

/** Waits until a stream accepts more data, or never will. */
async function drained(stream: Writable): Promise<void> {
  await new Promise<void>((resolve) => {
    const go = (): void => {
      for (const event of ["drain", "close"]) stream.off(event, go);
      resolve();
    };
    for (const event of ["drain", "close"]) stream.on(event, go);
  });
}

async function* framesOf(
  content: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Buffer, void, void> {
  let pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of content) {
    for (let at = 0; at < chunk.length; at += frameBytes) {
      const piece = chunk.subarray(at, at + frameBytes);
      pieces.push(piece);
      bytes += piece.length;
      if (bytes < frameBytes) continue;
      yield frameOf(pieces);
      pieces = [];
      bytes = 0;
    }
  }
  if (bytes > 0) yield frameOf(pieces);
  yield endFrame;
}

const endFrame = Buffer.from("0\n");

function frameOf(pieces: readonly Uint8Array[]): Buffer {
  const bytes = Buffer.concat(pieces);
  return Buffer.concat([Buffer.from(`${bytes.length}\n`), bytes]);
}

function endOf(words: string): CallEnd {
  // The system's message contains the file's name, which may contain any character.
  const [, how, code = "", text = ""] = /^(\w+) (\S*) ?([^]*)$/.exec(words) ?? [];
  if (how === "exit") return { type: "exit", code: Number(code) };
  return { type: "refused", code, text };
}
