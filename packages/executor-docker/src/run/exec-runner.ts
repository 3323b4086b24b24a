import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import type { BlockEvent } from "@fenced/executor-kit";
import type Docker from "dockerode";
import { workspacePath } from "../container/container-options.ts";
import { answered, dockerReason } from "../daemon/docker-error.ts";
import { shellKillProgram, shellOomProgram } from "../supervisor/shell-program.ts";
import type { BlockCommand, BlockRunner, CommandEnd, ContainerInventory } from "./block-runner.ts";
import type { RunnerContext } from "./connect-runner.ts";
import { ExecStream } from "./exec-stream.ts";
import type { Greeting } from "./greeting.ts";

/**
 * Runs blocks in a container whose image has no Python: each by an `exec` of the daemon, which takes several times as
 * long as a supervisor does. The daemon cannot end an `exec`; another one does, which finds the block's processes.
 */
export class ExecRunner implements BlockRunner {
  readonly inventory: ContainerInventory;
  readonly direct = false;
  readonly #context: RunnerContext;
  readonly #keeper: number;
  readonly #streams = new Set<ExecStream>();
  #lost: Error | undefined;

  constructor({ inventory, keeper }: Greeting, context: RunnerContext) {
    this.inventory = inventory;
    this.#keeper = keeper;
    this.#context = context;
  }

  async *run({ argv, env, stdin, signal }: BlockCommand): AsyncGenerator<BlockEvent, CommandEnd, void> {
    if (this.#lost) throw this.#lost;
    const mark = `FENCED_BLOCK=${randomUUID()}`;
    const kills = await this.#oomKills();
    const stream = await this.#start(argv, { ...env, [markName]: mark.slice(markName.length + 1) }, stdin);
    let killed: Promise<void> | undefined;
    const kill = (): void => {
      killed ??= this.#kill(mark).then(
        () => stream.leave(),
        (error: unknown) => stream.fail(error),
      );
    };
    signal.addEventListener("abort", kill, { once: true });
    if (signal.aborted) kill();
    try {
      const exitCode = yield* stream.events();
      await killed;
      const outOfMemory = exitCode === 137 && !signal.aborted && (await this.#oomKills()) !== kills;
      return { exitCode, outOfMemory };
    } finally {
      signal.removeEventListener("abort", kill);
      this.#streams.delete(stream);
    }
  }

  async reset(): Promise<void> {
    await this.#tool(["sh", "-c", shellKillProgram, "fenced", "", String(this.#keeper)]);
  }

  fail(error: Error): void {
    this.#lost ??= error;
    for (const stream of this.#streams) stream.fail(error);
  }

  #assertThere(): void {
    if (this.#lost) throw this.#lost;
  }

  async #kill(mark: string): Promise<void> {
    await this.#tool(["sh", "-c", shellKillProgram, "fenced", mark]);
  }

  async #oomKills(): Promise<string> {
    return this.#tool(["sh", "-c", shellOomProgram]);
  }

  /** Runs a short program of our own; returns what it wrote. */
  async #tool(argv: readonly string[]): Promise<string> {
    const stream = await this.#start(argv, {}, undefined);
    const read = async (): Promise<string> => {
      let text = "";
      for (const events = stream.events(); ;) {
        const { value, done } = await events.next();
        if (done === true) return text;
        if ("data" in value) text += String(value.data);
      }
    };
    try {
      return await answered(read(), "ending the processes of a block", toolMs);
    } catch (error) {
      const lost = error instanceof Error ? error : new Error(String(error));
      this.#context.lose(lost);
      throw lost;
    } finally {
      this.#streams.delete(stream);
    }
  }

  async #start(argv: readonly string[], env: Readonly<Record<string, string>>, stdin?: string): Promise<ExecStream> {
    this.#assertThere();
    try {
      const exec = await answered(this.#create(argv, env, stdin), "exec create");
      const started = exec.start({ hijack: true, stdin: stdin !== undefined });
      const stream = new ExecStream(exec, await answered(started, "exec start"), stdin);
      this.#streams.add(stream);
      return stream;
    } catch (cause) {
      // The container's end is told more exactly by who watches it.
      await sleep(200);
      this.#assertThere();
      throw new BackendUnavailableError(`The block could not be started in the container: ${dockerReason(cause)}`, {
        remedy: "Call restart(), which ends all processes in the container, and see that the daemon runs.",
        cause,
      });
    }
  }

  async #create(argv: readonly string[], env: Readonly<Record<string, string>>, stdin?: string): Promise<Docker.Exec> {
    const { container, directory, user } = this.#context;
    return container.exec({
      Cmd: ["sh", "-c", execProgram, "fenced", directory, ...argv],
      Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
      WorkingDir: workspacePath,
      AttachStdin: stdin !== undefined,
      AttachStdout: true,
      AttachStderr: true,
      ...(user === undefined ? {} : { User: user }),
    });
  }
}

const markName = "FENCED_BLOCK";
const toolMs = 20_000;

/** Gives a user without a home the one in the session's directory. */
const execProgram = `[ -n "$HOME" ] && [ "$HOME" != / ] && [ -w "$HOME" ] || export HOME="$1/home"
shift
exec "$@"`;
