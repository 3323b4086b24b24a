import { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, ExecutorStoppedError } from "@fenced/core";
import type Docker from "dockerode";
import type { ContainerCreateOptions } from "dockerode";
import { answered, dockerReason, isNotFound, statusCode } from "../daemon/docker-error.ts";
import type { Daemon } from "../daemon/find-daemon.ts";
import type { BlockRunner } from "../run/block-runner.ts";
import { connectRunner } from "../run/connect-runner.ts";
import { Heartbeat } from "./heartbeat.ts";

/** How to get at the supervisor of a container. */
export interface ContainerEntry {
  /** The supervisor is the container's main process; else it is started by an `exec` of this command. */
  readonly supervisor: "main" | { readonly command: readonly string[] };
  /** The container ends with the connection to its main process, which is to be held although it is not talked to. */
  readonly leashed: boolean;
  /** A directory of the session in the container. */
  readonly directory: string;
  /** The directory of this host that may be the container's work directory. */
  readonly workDirectory: string;
  /** The name in it of the socket that the supervisor is to make; `undefined`: none. */
  readonly socket: string | undefined;
  /** `uid:gid` of the blocks; `undefined`: the container's user. */
  readonly user: string | undefined;
}

const removeMs = 20_000;
const greetingMs = 60_000;
/** Seconds of silence after which a daemon counts as hung: one on this machine, and one behind a network. */
const [patience, remotePatience] = [5, 10];

/** A container whose supervisor answers, and the watch over it. */
export class RunningContainer {
  readonly id: string;
  readonly name: string;
  readonly #daemon: Daemon;
  readonly #container: Docker.Container;
  readonly #ended: Promise<number | undefined>;
  #runner: BlockRunner | undefined;
  #stream: Duplex | undefined;
  #leash: Duplex | undefined;
  #heartbeat: Heartbeat | undefined;
  #lost: Error | undefined;
  #closing = false;
  #explaining = false;
  readonly #watch = new AbortController();

  private constructor(daemon: Daemon, container: Docker.Container, name: string) {
    this.#daemon = daemon;
    this.#container = container;
    this.id = container.id;
    this.name = name;
    // Begun before the start, so that an end right after it is not missed. The answer is the last thing that a removed
    // container ever says.
    this.#ended = container.wait({ condition: "next-exit", abortSignal: this.#watch.signal }).then(
      ({ StatusCode: code }: { StatusCode: number }) => {
        this.#lose();
        return code;
      },
      () => {
        this.#lose();
        return undefined;
      },
    );
  }

  /**
   * Makes a container that is not started.
   *
   * @throws the daemon's error.
   */
  static async create(daemon: Daemon, options: ContainerCreateOptions): Promise<Docker.Container> {
    // Taken apart, or the client would put all of it into the address as well.
    const request: ContainerCreateOptions & { readonly _query: object; readonly _body: object } = {
      _query: { name: options.name },
      _body: options,
    };
    return answered(daemon.docker.createContainer(request), "container create");
  }

  /**
   * Starts a container, unless it runs, and connects to its supervisor.
   *
   * @param entry - how.
   * @param signal - gives up.
   */
  static async open(
    daemon: Daemon,
    container: Docker.Container,
    { name, running, ...entry }: ContainerEntry & { readonly name: string; readonly running: boolean },
    signal: AbortSignal,
  ): Promise<RunningContainer> {
    const opened = new RunningContainer(daemon, container, name);
    try {
      await opened.#connect(entry, running, signal);
      return opened;
    } catch (error) {
      opened.#detach();
      throw error;
    }
  }

  /** Why no block can run in it any more; `undefined` as long as they can. */
  get lost(): Error | undefined {
    return this.#lost;
  }

  /** Runs the blocks. */
  get runner(): BlockRunner {
    if (this.#runner) return this.#runner;
    throw new ExecutorStoppedError("The container is not started", { remedy: "Call start() first." });
  }

  /** Lets go of the container: its supervisor, and with it a container that is not kept, ends. */
  detach(): void {
    this.#detach();
  }

  /** Ends the container, and removes it if asked to. Does no harm if it is gone. */
  async end(remove: boolean): Promise<void> {
    this.#closing = true;
    try {
      if (remove) await removeContainer(this.#container);
      else await answered(this.#container.kill().catch(ignoreStopped), "container kill", removeMs);
      await Promise.race([this.#ended, sleep(removeMs, undefined, { ref: false })]);
    } catch (cause) {
      throw new BackendUnavailableError(`The container ${this.name} could not be ended: ${dockerReason(cause)}`, {
        remedy: `When the daemon answers again, see that it is gone: docker rm --force --volumes ${this.name}`,
        cause,
      });
    } finally {
      this.#detach();
    }
  }

  async #connect(
    { supervisor, leashed, user, ...places }: ContainerEntry,
    running: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    if (leashed) this.#leash = asDuplex(await answered(this.#container.attach(attachment), "container attach"));
    if (!running) await answered(this.#container.start(), "container start");
    const main = supervisor === "main" ? this.#leash : undefined;
    const stream = main ?? (await this.#execute(supervisor === "main" ? [] : supervisor.command, user));
    if (!main) this.#leash?.on("error", () => {}).resume();
    this.#stream = stream;
    const lose = (error: Error): void => this.#lose(error);
    const context = { docker: this.#daemon.docker, container: this.#container, ...places, user, lose };
    const connecting = connectRunner(stream, context);
    const giveUp = (): void => void stream.destroy();
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      this.#runner = await answered(connecting, "start of the supervisor", greetingMs);
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
    if (this.#lost) throw this.#lost;
    if (this.#runner.direct) return;
    this.#heartbeat = new Heartbeat({
      ping: () => this.#daemon.docker.ping(),
      patience: this.#daemon.socketPath === undefined ? remotePatience : patience,
      onLost: (cause) => this.#lose(new Error(dockerReason(cause), { cause }), "silent"),
    });
  }

  async #execute(command: readonly string[], user: string | undefined): Promise<Duplex> {
    const create = this.#container.exec({
      Cmd: [...command],
      AttachStdin: true,
      AttachStdout: true,
      AttachStderr: true,
      ...(user === undefined ? {} : { User: user }),
    });
    const exec = await answered(create, "exec create");
    return asDuplex(await answered(exec.start({ hijack: true, stdin: true }), "exec start"));
  }

  /** Fails the blocks that run, once it is known why the container is lost. */
  #lose(hint?: Error, daemon: "silent" | "answers" = "answers"): void {
    if (this.#closing) return;
    // Once: what ends the stream ends the container's main process too, or the other way round.
    if (this.#explaining) return;
    this.#explaining = true;
    void this.#explain(hint, daemon).then((error) => {
      this.#lost = error;
      this.#runner?.fail(error);
      this.#detach();
    });
  }

  async #explain(hint: Error | undefined, daemon: "silent" | "answers"): Promise<Error> {
    const code = daemon === "silent" ? undefined : await Promise.race([this.#ended, sleep(1000, undefined)]);
    const reason = daemon === "silent" ? undefined : await this.#state(code);
    const problem = reason ?? (hint ? dockerReason(hint) : "the connection to its supervisor broke");
    return new BackendUnavailableError(`The container ${this.name} is lost: ${problem}`, {
      remedy: "Call again: that uses a new container, if the daemon runs.",
      ...(hint ? { cause: hint } : {}),
    });
  }

  /** What the daemon says about the container; `undefined` if it sees nothing wrong. */
  async #state(code: number | undefined): Promise<string | undefined> {
    const ended = code === undefined ? "" : ` with exit code ${code}`;
    const killed = code === 137 ? ", so something killed it, or its memory was used up" : "";
    try {
      const { State: state } = await answered(this.#container.inspect(), "container inspect", 5000);
      if (state.OOMKilled) return "its memory was used up";
      return state.Running ? undefined : `it ended${ended}${killed}`;
    } catch (error) {
      if (isNotFound(error) || code !== undefined) return `it ended${ended}${killed}, and was removed`;
      return `the Docker daemon does not answer (${dockerReason(error)})`;
    }
  }

  #detach(): void {
    this.#closing = true;
    this.#watch.abort();
    this.#heartbeat?.stop();
    this.#stream?.destroy();
    this.#leash?.destroy();
  }
}

/** Removes a container with its anonymous volumes, and waits until it is gone. */
export async function removeContainer(container: Docker.Container): Promise<void> {
  for (const end = performance.now() + removeMs; ;) {
    try {
      await answered(container.remove({ force: true, v: true }), "container remove", removeMs);
      return;
    } catch (error) {
      if (isNotFound(error)) return;
      // It is being removed already, because it has ended by itself.
      if (statusCode(error) !== 409 || performance.now() > end) throw error;
      await sleep(20);
    }
  }
}

const attachment = { stream: true, stdin: true, stdout: true, stderr: true, hijack: true } as const;

function asDuplex(stream: NodeJS.ReadWriteStream): Duplex {
  if (stream instanceof Duplex) return stream;
  throw new Error("the client for Docker did not hand out its connection");
}

function ignoreStopped(error: unknown): void {
  if (!isNotFound(error) && statusCode(error) !== 409) throw error;
}
