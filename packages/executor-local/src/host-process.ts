import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import type { HostGround } from "./host-ground.ts";
import { rootOf } from "./processes/run-process.ts";
import type { SupervisorProcess } from "./running-supervisor.ts";

/** An unsandboxed supervisor on this host. */
export class HostProcess implements SupervisorProcess {
  readonly name: string = "The supervisor of the blocks";
  readonly lostRemedy: string = "Call again to start a new one.";
  readonly streams: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #ground: HostGround;

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

  /** Kills the supervisor and everything below it. Does not ask it to end, since a block may have stopped it. */
  async end(): Promise<void> {
    await this.#ground.endProcesses(rootOf(this.streams));
    for (const stream of this.streams.stdio) stream?.destroy();
  }
}
