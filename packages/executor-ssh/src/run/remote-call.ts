import type { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { OutputQueue, type BlockEvent } from "@fenced/executor-kit";
import { MarkedStream } from "../connection/marked-stream.ts";
import type { SshConnection } from "../connection/ssh-connection.ts";
import { noSsh } from "../connection/ssh-error.ts";
import { asLine } from "../remote/shell-words.ts";

/** How a call ended. */
export type CallEnd =
  | { readonly type: "exit"; readonly code: number }
  /** It could not be done: an error code, and a sentence if that says too little. */
  | { readonly type: "refused"; readonly code: string; readonly text: string }
  /** Without a word: what ssh, or a login shell, said instead. `begun`: the remote program had started. */
  | { readonly type: "broken"; readonly begun: boolean; readonly said: string };

/** One call of a function of the remote program: its outputs between the marks, and its end. */
export class RemoteCall {
  /** What follows the call; to be ended. */
  readonly stdin: Writable;
  readonly #output = new OutputQueue<CallEnd>();
  readonly #kill: () => void;
  #endedAt: number | undefined;

  /** @param call - shell: what to do. */
  constructor(connection: SshConnection, nonce: string, call: string) {
    const { child, said } = connection.start();
    this.stdin = child.stdin;
    this.#kill = () => child.kill("SIGKILL");
    child.stdin.on("error", () => {});
    child.stdin.write(asLine(call));
    const marked = { stdout: new MarkedStream(nonce), stderr: new MarkedStream(nonce) };
    const settle = (): void => {
      if (marked.stdout.ending === undefined || marked.stderr.ending === undefined) return;
      this.#endedAt ??= performance.now();
      this.#output.end(endOf(marked.stdout.ending));
      // A process in the background may hold the outputs for as long as it lives; nobody waits for it.
      child.unref();
    };
    for (const name of ["stdout", "stderr"] as const) {
      this.#output.follow(name, child[name], (bytes) => marked[name].push(bytes));
      child[name].on("data", settle);
    }
    child.on("error", (error) => this.#output.fail(noSsh(error)));
    child.on("close", () => {
      const begun = marked.stdout.begun || marked.stderr.begun;
      this.#output.end({ type: "broken", begun, said: `${marked.stdout.noise}\n${marked.stderr.noise}\n${said()}` });
    });
  }

  /** When the end came in, on the clock of `performance.now()`; its reader may learn of it later. */
  get endedAt(): number | undefined {
    return this.#endedAt;
  }

  /** What the program puts out, then its end. */
  events(): AsyncGenerator<BlockEvent, CallEnd, void> {
    return this.#output.events();
  }

  /** Everything that was started is dead: the end of its outputs is waited for only as long as a packet may take. */
  async leave(): Promise<void> {
    await sleep(1000, undefined, { ref: false });
    this.#kill();
  }

  /** Ends the call at once. */
  fail(error: unknown): void {
    this.#output.fail(error);
    this.#kill();
  }
}

function endOf(words: string): CallEnd {
  // What the system says contains the file's name, which may contain any character.
  const [, how, code = "", text = ""] = /^(\w+) (\S*) ?([^]*)$/.exec(words) ?? [];
  if (how === "exit") return { type: "exit", code: Number(code) };
  return { type: "refused", code, text };
}
