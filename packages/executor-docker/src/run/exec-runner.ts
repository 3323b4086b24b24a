import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import { answered, dockerReason, OutputDemultiplexer, type Container, type Exec } from "@fenced/docker-daemon";
import { feedProgram, isLiveInput, type OutputPiece, OutputStreams, type Sink } from "@fenced/executor-kit";
import type { ProgramEnd, ProgramRunner, SupervisedProgram, Supervisor } from "@fenced/executor-kit/supervisor";

const startProgram: string = readFileSync(new URL("./start-block.sh", import.meta.url), "utf8");
const killProgram: string = readFileSync(new URL("./kill-processes.sh", import.meta.url), "utf8");
const countProgram: string = readFileSync(new URL("./count-oom-kills.sh", import.meta.url), "utf8");

/** A program for the daemon's `exec`; its file must already exist. */
type ExecutedProgram = Omit<SupervisedProgram, "file">;

/** Runs the programs of one container. Without a supervisor, the optional members are absent. */
export type BlockRunner = ProgramRunner & Pick<Supervisor, "direct">;

/** A container without a supervisor. */
export interface ExecContext {
  readonly container: Container;
  /** A directory of the session in the container. */
  readonly directory: string;
  /** The path of the work directory in the container. */
  readonly workspace: string;
  /** The user that blocks run as; `undefined` for the container's. */
  readonly user: string | undefined;
  /** Arguments of `kill-processes.sh`: the processes that a reset ends. */
  readonly leftovers: readonly string[];
  /** Called once, when the container can no longer be used. */
  readonly lose: (error: Error) => void;
}

/**
 * Runs blocks in a container whose image has no Python, each with an `exec` of the daemon, which is several times
 * slower than a supervisor. The daemon cannot end an `exec`, so another `exec` finds and kills the block's processes.
 */
export class ExecRunner implements BlockRunner {
  readonly direct = false;
  readonly #context: ExecContext;
  readonly #streams = new Set<ExecStream>();
  #lost: Error | undefined;

  constructor(context: ExecContext) {
    this.#context = context;
  }

  async run({ argv, env, stdin }: ExecutedProgram, sink: Sink<OutputPiece>): Promise<ProgramEnd> {
    const { signal } = sink;
    const mark = randomUUID();
    const kills = await this.#oomKills();
    const stream = await this.#start(argv, { ...env, FENCED_BLOCK: mark }, sink, stdin);
    let killed: Promise<void> | undefined;
    const kill = (): void => {
      killed ??= this.#tool(["sh", "-c", killProgram, "fenced", `FENCED_BLOCK=${mark}`]).then(
        () => stream.leave(),
        (error: unknown) => stream.fail(error),
      );
    };
    signal.addEventListener("abort", kill, { once: true });
    if (signal.aborted) kill();
    try {
      const exitCode = await stream.ended;
      await killed;
      const outOfMemory = exitCode === 137 && !signal.aborted && (await this.#oomKills()) !== kills;
      return { exitCode, outOfMemory };
    } finally {
      signal.removeEventListener("abort", kill);
      this.#streams.delete(stream);
    }
  }

  async reset(): Promise<void> {
    await this.#tool(["sh", "-c", killProgram, "fenced", ...this.#context.leftovers]);
  }

  fail(error: Error): void {
    this.#lost ??= error;
    for (const stream of this.#streams) stream.fail(error);
  }

  #assertThere(): void {
    if (this.#lost) throw this.#lost;
  }

  async #oomKills(): Promise<string> {
    return this.#tool(["sh", "-c", countProgram]);
  }

  /** Runs one of Fenced's own short programs; returns its output. */
  async #tool(argv: readonly string[]): Promise<string> {
    let text = "";
    const write = ({ data }: OutputPiece): undefined => void (text += Buffer.from(data).toString());
    const stream = await this.#start(argv, {}, { signal: new AbortController().signal, write });
    try {
      await answered(stream.ended, "ending the processes of a block", toolMs);
      return text;
    } catch (error) {
      const lost = error instanceof Error ? error : new Error(String(error));
      this.#context.lose(lost);
      throw lost;
    } finally {
      this.#streams.delete(stream);
    }
  }

  async #start(
    argv: readonly string[],
    env: Readonly<Record<string, string>>,
    sink: Sink<OutputPiece>,
    stdin?: ExecutedProgram["stdin"],
  ): Promise<ExecStream> {
    this.#assertThere();
    const { container, directory, workspace, user } = this.#context;
    try {
      const create = container.exec({
        Cmd: ["sh", "-c", startProgram, "fenced", directory, ...argv],
        // The runtime would search `sh` itself with a PATH of the caller's; the shell sets it instead.
        Env: Object.entries(env).map(([name, value]) => `${name === "PATH" ? "FENCED_PATH" : name}=${value}`),
        WorkingDir: workspace,
        // Always: gVisor would take the daemon's /dev/null as input, and give that file of the machine to another account.
        AttachStdin: true,
        AttachStdout: true,
        AttachStderr: true,
        ...(user === undefined ? {} : { User: user }),
      });
      const exec = await answered(create, "exec create");
      const started = exec.start({ hijack: true, stdin: true });
      const stream = new ExecStream(exec, await answered(started, "exec start"), sink, stdin);
      this.#streams.add(stream);
      return stream;
    } catch (cause) {
      // Give the container's monitor, which reports the end more precisely, time to do so.
      await sleep(200);
      this.#assertThere();
      throw new BackendUnavailableError(`The block could not be started in the container: ${dockerReason(cause)}`, {
        remedy: "Call restart(), which ends all processes in the container, and make sure that the daemon is running.",
        cause,
      });
    }
  }
}

const toolMs = 20_000;

const pollMs = 100;
/** Milliseconds of silence after which an ended program's output counts as complete. */
const quietMs = 500;

/** The output and the end of one `exec` of the daemon. */
class ExecStream {
  /** Resolves to the exit code when the program has ended and its output has been written to the sink. */
  readonly ended: Promise<number>;
  readonly #exec: Exec;
  readonly #stream: Duplex;
  readonly #output = new OutputStreams();
  #end: (exitCode: number) => void = () => {};
  #reject: (error: unknown) => void = () => {};
  #over: boolean = false;

  constructor(exec: Exec, stream: Duplex, sink: Sink<OutputPiece>, stdin: ExecutedProgram["stdin"]) {
    this.#exec = exec;
    this.#stream = stream;
    this.ended = new Promise((resolve, reject) => {
      this.#end = resolve;
      this.#reject = reject;
    });
    this.ended.catch(() => {});
    let room: Promise<void> | undefined;
    const demultiplexer = new OutputDemultiplexer((type, data) => {
      room = sink.write({ type, data }) ?? room;
    });
    this.#output.follow(stream, (chunk) => {
      room = undefined;
      demultiplexer.push(chunk);
      return room;
    });
    // The program does not read its input, or the connection broke; its end shows which.
    stream.on("error", () => {});
    const finish = (): void => void this.#finish();
    stream.once("end", finish);
    stream.once("close", finish);
    if (isLiveInput(stdin)) void feedProgram(stdin, stream);
    else stream.end(stdin);
    void this.#watch();
  }

  /** Ends the output of a killed program, unless the daemon reports its end soon. */
  async leave(): Promise<void> {
    await sleep(500);
    this.#close();
    this.#end(137);
  }

  fail(error: unknown): void {
    this.#close();
    this.#reject(error);
    this.#stream.destroy();
  }

  /** Also polls the daemon, because a child that holds the output open keeps the stream from ending. */
  async #watch(): Promise<void> {
    for (let pause = pollMs; !this.#over; pause = Math.min(pause * 1.2, 1000)) {
      await sleep(pause);
      if (await this.#hasEnded()) await this.#settle();
    }
  }

  /**
   * Waits until nothing has arrived for a while, since the daemon may report the end before it has passed on all
   * output. Does not count silence while nobody reads. Only blocks that leave a child with their output open wait here.
   */
  async #settle(): Promise<void> {
    for (let seen = -1; !this.#over && (seen !== this.#output.arrived || this.#output.isPaused);) {
      seen = this.#output.arrived;
      await sleep(quietMs);
    }
    await this.#finish();
  }

  async #hasEnded(): Promise<boolean> {
    try {
      return !(await answered(this.#exec.inspect(), "exec inspect", 10_000)).Running;
    } catch {
      return false;
    }
  }

  async #finish(): Promise<void> {
    if (this.#over) return;
    this.#close();
    // Right after the end, the daemon may still report the program as running.
    for (let attempt = 0; attempt < 100; attempt += 1) {
      try {
        const { Running: running, ExitCode: code } = await answered(this.#exec.inspect(), "exec inspect", 10_000);
        if (!running && code !== null) {
          this.#end(code);
          return;
        }
      } catch (error) {
        this.#reject(error);
        return;
      }
      await sleep(20);
    }
    this.#reject(new Error("the daemon does not report how the block ended"));
  }

  /** What the program left running may keep writing; that is read and dropped until the container or the process ends. */
  #close(): void {
    this.#over = true;
    this.#output.end();
  }
}
