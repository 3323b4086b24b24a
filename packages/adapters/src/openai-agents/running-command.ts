import type { ProcessExit, WritableProcess } from "@fenced/core";
import { within } from "@fenced/core/abort";
import { RecentOutput } from "./recent-output.ts";

const interrupt = "\u0003";

/** How a command was started. */
export interface CommandParts {
  readonly started: WritableProcess;
  /** It runs on a terminal, which turns Ctrl-C into a signal itself. */
  readonly hasTerminal: boolean;
  /** Its input can be written later; otherwise it has none. */
  readonly takesInput: boolean;
  /** Limit on what is kept of each output until somebody takes it. */
  readonly maxOutputBytes: number;
}

/** A command that may run for longer than its caller waits. Its output is read all the time, so it never blocks. */
export class RunningCommand {
  /** Both outputs, in the order in which they arrived. */
  readonly output: RecentOutput;
  readonly stdout: RecentOutput;
  readonly stderr: RecentOutput;
  readonly #parts: CommandParts;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #ending: Promise<void>;
  #exit: ProcessExit | undefined;
  #failure: { readonly reason: unknown } | undefined;

  constructor(parts: CommandParts) {
    this.#parts = parts;
    this.output = new RecentOutput(parts.maxOutputBytes);
    this.stdout = new RecentOutput(parts.maxOutputBytes);
    this.stderr = new RecentOutput(parts.maxOutputBytes);
    this.#stdin = parts.started.stdin.getWriter();
    this.#stdin.closed.catch(() => {});
    if (!parts.takesInput) this.#stdin.close().catch(() => {});
    this.#ending = this.#follow();
  }

  get hasEnded(): boolean {
    return this.#exit !== undefined || this.#failure !== undefined;
  }

  /** @throws why nobody knows how it ended: the sandbox was ended, or broke down. */
  exitCode(): number | undefined {
    if (this.#failure) throw this.#failure.reason;
    return this.#exit?.exitCode;
  }

  /** Waits for its end, at most so long. */
  async wait(milliseconds: number): Promise<void> {
    await within(milliseconds, this.#ending);
  }

  /** Writes to its input. Does not wait until it is read, since it may never be. */
  async write(characters: string): Promise<void> {
    const { hasTerminal, started } = this.#parts;
    if (!hasTerminal && characters.includes(interrupt)) await started.kill("SIGINT");
    const typed = hasTerminal ? characters : characters.replaceAll(interrupt, "");
    if (typed === "") return;
    this.#stdin.write(Buffer.from(typed)).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      if (!this.hasEnded) this.output.add(Buffer.from(`[write_stdin failed: ${reason}]\n`));
    });
  }

  /** Kills it with everything that it has started. */
  async kill(): Promise<void> {
    await this.#parts.started.kill();
    await this.#ending;
  }

  async #follow(): Promise<void> {
    const { started } = this.#parts;
    const [, , ended] = await Promise.allSettled([
      this.#read(started.stdout, this.stdout),
      this.#read(started.stderr, this.stderr),
      started.wait(),
    ]);
    if (ended.status === "fulfilled") this.#exit = ended.value;
    else this.#failure = { reason: ended.reason };
  }

  async #read(stream: ReadableStream<Uint8Array>, own: RecentOutput): Promise<void> {
    for await (const piece of stream) {
      this.output.add(piece);
      own.add(piece);
    }
  }
}
