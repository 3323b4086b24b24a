import { randomUUID } from "node:crypto";
import { ByteQueue, type WritableProcess } from "@fenced/core";
import { afterMs, within } from "@fenced/core/abort";

/** How long to wait for the end of what is killed, in milliseconds. */
const killMs = 10_000;
// oxlint-disable-next-line no-control-regex -- it is about control characters
const ansiSequences = /\u001B\[[0-9;?]*[ -/]*[@-~]/g;

/** How a command ended, and the end of what it has printed. */
export interface CommandEnd {
  readonly output: string;
  /** Absent if it did not end by itself. */
  readonly exitCode?: number;
  /** Why it did not, with the error of the sandbox if that broke down. */
  readonly failure?: { readonly reason: string; readonly cause?: unknown };
}

/** A command whose end the shell will print. */
interface CurrentCommand {
  /** What the shell prints then, with the exit code. */
  readonly mark: RegExp;
  readonly end: (end: Omit<CommandEnd, "output">) => void;
}

/** A shell that reads commands from its input, one at a time. Its output is read all the time, so it never blocks. */
export class RunningShell {
  readonly #started: WritableProcess;
  readonly #maxBytes: number;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  #bytes = new ByteQueue();
  #isCut = false;
  /** The end of what has arrived, in which a mark may have begun. */
  #tail = Buffer.alloc(0);
  #current: CurrentCommand | undefined;
  /** Why it has ended. */
  #failure: CommandEnd["failure"];

  constructor(started: WritableProcess, maxBytes: number) {
    this.#started = started;
    this.#maxBytes = maxBytes;
    this.#stdin = started.stdin.getWriter();
    this.#stdin.closed.catch(() => {});
    void this.#read();
  }

  /** Runs a command in the shell itself, without input. What background jobs have printed since the last one is dropped. */
  async execute(
    command: string,
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<CommandEnd> {
    [this.#bytes, this.#isCut, this.#tail] = [new ByteQueue(), false, Buffer.alloc(0)];
    const id = randomUUID();
    const ended = new Promise<Omit<CommandEnd, "output">>((resolve) => {
      this.#current = { mark: new RegExp(`\\n${id} (\\d+)\\n`), end: resolve };
    });
    const end = (reason: string): void => this.#current?.end({ failure: { reason } });
    const cancel = afterMs(timeoutMs, () => end(`bash command timed out after ${timeoutMs}ms`));
    const abort = (): void => end(signal.reason instanceof Error ? signal.reason.message : "aborted");
    signal.addEventListener("abort", abort, { once: true });
    if (signal.aborted) abort();
    if (this.#failure !== undefined) this.#current?.end({ failure: this.#failure });
    // As a quoted text, nothing that is wrong in the command reaches beyond it. Nobody waits until the shell reads it: it may never.
    const line = `eval ${quoted(command)} < /dev/null 2>&1; printf '\\n%s %d\\n' ${id} "$?"\n`;
    this.#stdin.write(Buffer.from(line)).catch(() => {});
    try {
      return { ...(await ended), output: this.#printed() };
    } finally {
      this.#current = undefined;
      cancel();
      signal.removeEventListener("abort", abort);
    }
  }

  /** Kills it with everything that it has started. Returns even if that takes too long. */
  async kill(): Promise<void> {
    await within(
      killMs,
      this.#started.kill().catch(() => {}),
    );
  }

  async #read(): Promise<void> {
    try {
      for await (const piece of this.#started.stdout) this.#add(piece);
      await this.#started.wait();
      this.#failure = { reason: "bash session terminated" };
    } catch (cause) {
      this.#failure = { reason: cause instanceof Error ? cause.message : String(cause), cause };
    }
    this.#current?.end({ failure: this.#failure });
  }

  #add(piece: Uint8Array): void {
    const text = Buffer.concat([this.#tail, piece]);
    const found = this.#current?.mark.exec(text.toString("latin1"));
    this.#tail = Buffer.from(text.subarray(-64));
    this.#bytes.add(piece);
    if (!found) {
      // Not for each piece, since what remains may have to be moved.
      if (this.#bytes.length > 2 * this.#maxBytes) this.#cut(this.#maxBytes + this.#tail.length);
      return;
    }
    // The mark itself is no output, and what follows it is not of this command.
    const surplus = text.length - found.index;
    const kept = this.#bytes.take(Math.max(0, this.#bytes.length - surplus));
    [this.#bytes, this.#tail] = [new ByteQueue(), Buffer.alloc(0)];
    this.#bytes.add(kept);
    this.#current?.end({ exitCode: Number(found[1]) });
    this.#current = undefined;
  }

  #cut(maxBytes: number): void {
    const surplus = this.#bytes.length - maxBytes;
    if (surplus <= 0) return;
    this.#isCut = true;
    this.#bytes.take(surplus);
  }

  #printed(): string {
    this.#cut(this.#maxBytes);
    const bytes = Buffer.from(this.#bytes.take());
    let start = 0;
    // A character of which only the end is left.
    while (this.#isCut && start < 4 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start += 1;
    const text = bytes.subarray(start).toString().replace(ansiSequences, "");
    let end = text.length;
    while (text[end - 1] === "\n") end -= 1;
    return `${this.#isCut ? "[output truncated]\n" : ""}${text.slice(0, end)}`;
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
