import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, ExecutorStoppedError } from "@fenced/core";
import {
  answered,
  asDuplex,
  dockerReason,
  execProgram,
  isNotFound,
  removeContainer,
  splitOutputs,
  statusCode,
  type Container,
  type Daemon,
  type ProgramStreams,
} from "@fenced/docker-daemon";
import { Heartbeat, PlaceGone } from "@fenced/executor-kit";
import {
  attachCommand,
  connectSupervisor,
  Loss,
  type SessionAddress,
  SessionLink,
  sessionMark,
  type Supervisor,
  type SupervisorAnswer,
  type SupervisorInventory,
} from "@fenced/executor-kit/supervisor";
import { ExecRunner, type BlockRunner } from "../run/exec-runner.ts";

/** How to reach a container's supervisor. */
export interface ContainerEntry {
  /** `"main"` if the supervisor is the container's main process; otherwise the command to start it with `exec`. */
  readonly supervisor: "main" | { readonly command: readonly string[] };
  /**
   * True if the container ends with the connection to its main process, which must then stay open even if nothing is
   * sent over it.
   */
  readonly leashed: boolean;
  /** The executor's id. */
  readonly owner: string;
  /** A directory of the session in the container. */
  readonly directory: string;
  /** The path of the work directory in the container. */
  readonly workspace: string;
  /**
   * The path of the socket that the supervisor creates, if this host sees the container's work directory; otherwise
   * `undefined`.
   */
  readonly socket: string | undefined;
  /** `uid:gid` of the blocks; `undefined` for the container's user. */
  readonly user: string | undefined;
  /** How to reach a session that outlives this program. Default: it does not. */
  readonly session?: SessionAddress & {
    readonly keepAliveMs: number;
    readonly takeOver: boolean;
  };
}

/** What has answered in a container. */
interface ContainerAnswer extends SupervisorAnswer {
  readonly runner: BlockRunner;
}

const removeMs = 20_000;
/** Seconds of silence after which a daemon counts as hung: for a local one, and for one across a network. */
const [patience, remotePatience] = [5, 10];

/** A monitored container whose supervisor responds. */
export class RunningContainer {
  readonly id: string;
  readonly name: string;
  readonly #daemon: Daemon;
  readonly #container: Container;
  #ended: Promise<number | undefined> = Promise.resolve(undefined);
  #isWatching = false;
  /** Whether the session was told to end, once that is known. */
  #told: Promise<boolean> | undefined;
  #goesOn = false;
  #link: SessionLink | undefined;
  #ready: ContainerAnswer | undefined;
  #stream: Duplex | undefined;
  #leash: Duplex | undefined;
  #heartbeat: Heartbeat | undefined;
  readonly #loss: Loss;
  readonly #watch = new AbortController();

  private constructor(daemon: Daemon, container: Container, name: string) {
    this.#daemon = daemon;
    this.#container = container;
    this.id = container.id;
    this.name = name;
    this.#loss = new Loss(
      (hint) => this.#explain(hint),
      (error) => {
        this.#ready?.runner.fail(error);
        // Nobody else can use it, if it is still this program's.
        void this.#tellEnd();
        this.#letGo();
      },
    );
    // Start waiting before the container starts, to catch one that ends at once.
    this.#watchEnd("next-exit");
  }

  /**
   * Starts a container unless it is running, and connects to its supervisor.
   *
   * @param entry - how to reach the supervisor.
   * @param signal - cancels the start.
   */
  static async open(
    daemon: Daemon,
    container: Container,
    { name, running, ...entry }: ContainerEntry & { readonly name: string; readonly running: boolean },
    signal: AbortSignal,
  ): Promise<RunningContainer> {
    const opened = new RunningContainer(daemon, container, name);
    try {
      await opened.#connect(entry, running, signal);
      return opened;
    } catch (error) {
      opened.detach();
      throw error;
    }
  }

  /** Resolves once blocks can no longer run in it, unless it was ended on purpose: to an error that says why. */
  get lost(): Promise<Error> {
    return this.#loss.lost;
  }

  /** True once something shows that it is lost, even if it is not known yet why. */
  get isLosing(): boolean {
    return this.#loss.isReported;
  }

  /** Why blocks can no longer run in it; `undefined` while they can. */
  get error(): Error | undefined {
    return this.#loss.error;
  }

  /** Runs blocks in the container. */
  get runner(): BlockRunner {
    return this.#started.runner;
  }

  /** Its supervisor; `undefined` if the image has no Python. */
  get supervisor(): Supervisor | undefined {
    return this.#started.supervisor;
  }

  /** The supervisor's inventory of the container. */
  get inventory(): SupervisorInventory {
    return this.#started.inventory;
  }

  /** Another program uses its session now. */
  get isTakenOver(): boolean {
    return this.#link?.isReplaced === true;
  }

  /** Its session may go on: it is another program's, or could not be told to end, and ends by itself. */
  get goesOn(): boolean {
    return this.#goesOn || this.isTakenOver;
  }

  /** Lets go of a session that outlives this program. */
  async leave(): Promise<void> {
    this.#loss.cancel();
    await this.#link?.detach();
    this.#letGo();
  }

  /** Disconnects from the container: its supervisor ends, and with it the container unless it is kept. */
  detach(): void {
    this.#loss.cancel();
    this.#letGo();
  }

  #letGo(): void {
    this.#watch.abort();
    this.#heartbeat?.stop();
    if (this.#told === undefined) this.#link?.streams.stdin.destroy();
    this.#stream?.destroy();
    this.#leash?.destroy();
  }

  /** This is all that a removed container ever reports. A session that outlives a daemon's connections does so itself. */
  #watchEnd(condition: "next-exit" | "not-running"): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    this.#ended = this.#container.wait({ condition, abortSignal: this.#watch.signal }).then(
      ({ StatusCode: code }: { StatusCode: number }) => {
        void this.#loss.report(endReported);
        return code;
      },
      () => {
        this.#isWatching = false;
        if (!this.#link) void this.#loss.report(endReported);
        return undefined;
      },
    );
  }

  /** Ends the container, and removes it if `remove` is set. Does nothing if it is already gone. */
  async end(remove: boolean): Promise<void> {
    this.#loss.cancel();
    if (!(await this.#tellEnd())) {
      this.#goesOn = true;
      this.detach();
      return;
    }
    try {
      if (remove) await removeContainer(this.#container);
      else await answered(this.#container.kill().catch(ignoreStopped), "container kill", removeMs);
      await Promise.race([this.#ended, sleep(removeMs, undefined, { ref: false })]);
    } catch (cause) {
      throw new BackendUnavailableError(`The container ${this.name} could not be removed: ${dockerReason(cause)}`, {
        remedy: `When the daemon answers again, make sure that the container is gone: docker rm --force --volumes ${this.name}`,
        cause,
      });
    } finally {
      this.detach();
    }
  }

  /** Returns whether the container is this program's to end. Another program may have its session by now. */
  #tellEnd(): Promise<boolean> {
    this.#told ??= this.#link?.end().then((outcome) => outcome === "told") ?? Promise.resolve(true);
    return this.#told;
  }

  async #connect(
    { supervisor, leashed, owner, user, directory, workspace, socket, session }: ContainerEntry,
    running: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    if (leashed) this.#leash = asDuplex(await answered(this.#container.attach(attachment), "container attach"));
    if (!running) await answered(this.#container.start(), "container start");
    const main = supervisor === "main" ? this.#leash : undefined;
    const lose = (error: unknown): void => void this.#loss.report(error);
    const isCut = (): boolean => this.#link?.isCut === true;
    const options = { signal, onLost: lose, isCut, ...(socket === undefined ? {} : { socket }) };
    const connecting = async (): Promise<SupervisorAnswer> => {
      if (session) this.#link = await this.#openLink(session, signal);
      return connectSupervisor(this.#link?.streams ?? (await this.#openStream(supervisor, user)), options);
    };
    const { inventory, supervisor: answer } = await connecting().catch(async (error: unknown) => {
      signal.throwIfAborted();
      // The stream only shows that it ended, and a killed supervisor cannot report why.
      throw (await this.#whyKilled()) ?? error;
    });
    // In a container that outlives this session, the process that keeps it alive must live on, and those of others.
    const leftovers = main ? ["", String(inventory.process)] : [`${sessionMark}=${owner}`];
    const context = { container: this.#container, directory, workspace, user, leftovers, lose };
    const runner = answer ?? new ExecRunner(context);
    this.#ready = { inventory, runner, supervisor: answer };
    if (this.error) throw this.error;
    if (runner.direct || this.#link) return;
    this.#heartbeat = new Heartbeat({
      name: "the Docker daemon",
      tickMs: 1000,
      ping: () => this.#daemon.docker.ping(),
      patience: this.#daemon.transport.kind !== "socket" ? remotePatience : patience,
      onLost: (cause) => lose(new DaemonSilent(dockerReason(cause), { cause })),
    });
  }

  async #openStream(supervisor: ContainerEntry["supervisor"], user: string | undefined): Promise<ProgramStreams> {
    const main = supervisor === "main" ? this.#leash : undefined;
    const stream = main ?? (await execProgram(this.#container, supervisor === "main" ? [] : supervisor.command, user));
    if (!main) this.#leash?.on("error", () => {}).resume();
    this.#stream = stream;
    return splitOutputs(stream);
  }

  async #openLink(
    { key, keepAliveMs, takeOver, socket }: NonNullable<ContainerEntry["session"]>,
    signal: AbortSignal,
  ): Promise<SessionLink> {
    const connect = async (): Promise<ProgramStreams> => {
      try {
        const stream = await execProgram(this.#container, attachCommand(socket));
        // The connection that waited for the container's end may have broken, too.
        this.#watchEnd("not-running");
        return splitOutputs(stream);
      } catch (error) {
        // One that is paused, or restarts, comes back.
        const hasEnded = statusCode(error) === 409 && /is not running/i.test(dockerReason(error));
        if (hasEnded || isNotFound(error)) throw new PlaceGone(dockerReason(error), { cause: error });
        throw error;
      }
    };
    // A session that an earlier program has left is reached only by `exec`.
    const first = this.#leash && splitOutputs(this.#leash);
    return SessionLink.open({ key, keepAliveMs, takeOver, signal, connect, ...(first && { first }) });
  }

  /** Returns the error for a container that was killed while it started; `undefined` if it ended by itself. */
  async #whyKilled(): Promise<Error | undefined> {
    const code = await Promise.race([this.#ended, sleep(1000, undefined, { ref: false })]);
    if (code !== undefined && code < 128) return undefined;
    const reason = await this.#state(code);
    if (reason === undefined) return undefined;
    return new BackendUnavailableError(`The container ${this.name} was killed while it started: ${reason}`, {
      remedy: "Call again to use a new container. If it happens again, find out what ends it, or raise `memoryBytes`.",
    });
  }

  async #explain(hint: Error): Promise<Error> {
    if (ExecutorStoppedError.isInstance(hint)) return hint;
    const isSilent = hint instanceof DaemonSilent;
    const code = isSilent ? undefined : await Promise.race([this.#ended, sleep(1000, undefined)]);
    const reason = isSilent ? undefined : await this.#state(code);
    return new BackendUnavailableError(`The container ${this.name} is lost: ${reason ?? dockerReason(hint)}`, {
      remedy: "Make sure that the daemon is running, and call again to use a new container.",
      cause: hint,
    });
  }

  /** What is wrong with the container, according to the daemon; `undefined` if nothing is wrong. */
  async #state(code: number | undefined): Promise<string | undefined> {
    try {
      const { State: state } = await answered(this.#container.inspect(), "container inspect", 5000);
      if (state.OOMKilled) return "it ran out of memory";
      return state.Running ? undefined : endedWith(code ?? state.ExitCode);
    } catch (error) {
      if (isNotFound(error) || code !== undefined) return `${endedWith(code)}, and was removed`;
      return `the Docker daemon does not answer (${dockerReason(error)})`;
    }
  }

  get #started(): ContainerAnswer {
    if (this.#ready) return this.#ready;
    throw new ExecutorStoppedError("The container is not started", { remedy: "Call start() first." });
  }
}

function endedWith(code: number | undefined): string {
  const killed = code === 137 ? ", so it was killed, or ran out of memory" : "";
  return code === undefined ? "it ended" : `it ended with exit code ${code}${killed}`;
}

/** The daemon does not answer, so it cannot say what happened. */
class DaemonSilent extends Error {}

/** The daemon reported the container's end, or can no longer do so. */
const endReported = new Error("the connection to its supervisor broke");

const attachment = { stream: true, stdin: true, stdout: true, stderr: true, hijack: true } as const;

function ignoreStopped(error: unknown): void {
  if (!isNotFound(error) && statusCode(error) !== 409) throw error;
}
