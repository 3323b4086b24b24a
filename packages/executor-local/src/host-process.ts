import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import { within } from "@fenced/core/abort";
import type { HostGround } from "./host-ground.ts";
import { rootOf } from "./processes/run-process.ts";
import type { SupervisorProcess } from "./running-supervisor.ts";

/** How long a supervisor may take to end its blocks and remove what it has made outside the session, in milliseconds. */
const cleanUpMs = 1000;

/** An unsandboxed supervisor on this host. */
export class HostProcess implements SupervisorProcess {
  readonly name: string = "The supervisor of the blocks";
  readonly lostRemedy: string = "Call again to start a new one.";
  readonly streams: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #ground: HostGround;
  readonly #exited: Promise<void>;
  /** Resolves when everything is dead. Only then may another process of the session start, or it would be killed too. */
  #ended: Promise<void> | undefined;

  /** @param env - variables of this program that blocks also get. */
  constructor(command: readonly [string, ...string[]], env: Readonly<Record<string, string>>, ground: HostGround) {
    this.#ground = ground;
    const { group, mark } = ground;
    const variables = { ...env, [mark.name]: mark.value };
    const [program, ...words] = group?.wrap(command, variables) ?? command;
    // Detached from this program's terminal, whose Ctrl-C is not meant for blocks.
    this.streams = spawn(program, words, { cwd: "/", env: variables, stdio: "pipe", detached: true });
    // Its streams also end, which is enough.
    this.streams.on("error", () => {});
    this.streams.stdin.on("error", () => {});
    this.#exited = new Promise((resolve) => {
      for (const end of ["exit", "error"]) this.streams.once(end, () => resolve());
    });
  }

  async check(): Promise<void> {}

  explain(cause: unknown): Error {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return new BackendUnavailableError(`${this.name} did not start: ${reason}`, {
      remedy: "Install Python 3.8 or later as `python3`, or leave `warm` and `stateful` out.",
      cause,
    });
  }

  kill(): void {
    void this.end().catch(() => {});
  }

  /** Lets the supervisor clean up, which one that a block has stopped cannot, and kills everything below it. */
  end(): Promise<void> {
    return (this.#ended ??= this.#end());
  }

  async #end(): Promise<void> {
    this.streams.stdin.end();
    await within(cleanUpMs, this.#exited);
    await this.#ground.endProcesses(rootOf(this.streams));
    for (const stream of this.streams.stdio) stream?.destroy();
  }
}
