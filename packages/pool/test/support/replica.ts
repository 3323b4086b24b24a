import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { vi } from "vitest";
import * as z from "zod";

const replica = join(import.meta.dirname, "../fixtures/replica.ts");
const line = z.object({
  id: z.number().optional(),
  ready: z.boolean().optional(),
  drained: z.boolean().optional(),
  lost: z.string().optional(),
  reason: z.string().optional(),
  error: z.string().optional(),
  output: z.string().optional(),
  stateLost: z.boolean().optional(),
  failed: z.object({ code: z.string(), message: z.string() }).optional(),
});
type Line = z.infer<typeof line>;

/** A process with sessions, as `fixtures/replica.ts` has them. */
export class Replica implements AsyncDisposable {
  readonly lines: Line[] = [];
  readonly #child: ChildProcess;
  #calls = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
    if (!child.stdout) throw new Error("The process has no output");
    // It may have been killed.
    child.stdin?.on("error", () => {});
    createInterface(child.stdout).on("line", (text) => this.lines.push(line.parse(JSON.parse(text))));
  }

  /** @param words - the engine's URL, the directory of the store, the time of a lease, and an image with a label of its containers. */
  static async start(...words: readonly string[]): Promise<Replica> {
    const [program, ...args] = await bundledCommand(replica, ...words);
    const started = new Replica(spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] }));
    await vi.waitUntil(() => started.lines.some(({ ready }) => ready === true), { timeout: 60_000 });
    return started;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Runs code in the session of a key. */
  run(key: string, code: string): Promise<Line> {
    return this.#ask({ key, code });
  }

  /** Submits code there under this id. */
  submit(key: string, run: string, code: string, language = "sh"): Promise<Line> {
    return this.#ask({ key, run, code, language });
  }

  /** Waits for what it prints. */
  result(key: string, run: string): Promise<Line> {
    return this.#ask({ key, run, code: "" });
  }

  async #ask(command: {
    readonly key: string;
    readonly code: string;
    readonly run?: string;
    readonly language?: string;
  }): Promise<Line> {
    const id = (this.#calls += 1);
    this.#child.stdin?.write(`${JSON.stringify({ id, ...command })}\n`);
    for (;;) {
      const found = this.lines.find((each) => each.id === id);
      if (found) return found;
      if (this.hasEnded) throw new Error("the process has ended");
      await new Promise((resolve) => {
        setTimeout(resolve, 10);
      });
    }
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  signal(name: "SIGSTOP" | "SIGCONT" | "SIGKILL"): void {
    this.#child.kill(name);
  }

  /** Shuts it down, as a deployment does. */
  async drain(): Promise<void> {
    if (this.hasEnded) return;
    const ended = once(this.#child, "exit");
    this.#child.stdin?.end();
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.signal("SIGCONT");
    await this.drain();
  }
}
