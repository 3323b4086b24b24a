import { randomUUID } from "node:crypto";
import { Duplex } from "node:stream";
import { text as readText } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, FencedError, type NetworkDecision } from "@fenced/core";
import type { Container, ContainerLeash, Daemon, MountedSource, RuntimeKernel } from "@fenced/docker-daemon";
import { openContainerGate, type ContainerGate, type DaemonPackage } from "./container-gate.ts";
import {
  type ContainerSettings,
  type CreatedContainer,
  createJupyterContainer,
  home,
  innerPort,
  networkOf,
  ownerLabel,
  publishedPort,
} from "./create-jupyter-container.ts";
import type { DockerJupyterServerOptions } from "./docker-server-options.ts";

/** Milliseconds for the daemon to say that a container has ended. */
const lastWordsMs = 500;

/** A container in which a Jupyter server runs. */
export class JupyterContainer {
  readonly #daemon: Daemon;
  readonly #package: DaemonPackage;
  readonly #container: Container;
  readonly #leash: ContainerLeash;
  readonly #input: NodeJS.ReadWriteStream | undefined;
  readonly #token: string;
  readonly systemKernel: RuntimeKernel;
  #port: number = 0;
  #gate: ContainerGate | undefined;
  #ended: string | undefined;
  #kills: number = 0;

  private constructor(
    held: { daemon: Daemon; package: DaemonPackage; leash: ContainerLeash } & CreatedContainer,
    input: NodeJS.ReadWriteStream | undefined,
    token: string,
  ) {
    this.#daemon = held.daemon;
    this.#package = held.package;
    this.#container = held.container;
    this.#leash = held.leash;
    this.systemKernel = held.systemKernel;
    this.#input = input;
    this.#token = token;
    // The attached stream ends with the container. Without one, the container is checked when a call fails.
    input?.on("close", () => this.#end());
    input?.on("end", () => this.#end());
    input?.on("error", () => this.#end());
    input?.resume();
  }

  /** @throws BackendUnavailableError if Docker does not start it. */
  static async start(loaded: DaemonPackage, daemon: Daemon, settings: ContainerSettings): Promise<JupyterContainer> {
    const { stopContainer = true, autoRemove = true } = settings.options;
    const owner = randomUUID();
    const end = stopContainer ? (autoRemove ? "remove" : "kill") : "keep";
    const leash = new loaded.ContainerLeash({ transport: daemon.transport, label: `${ownerLabel}=${owner}`, end });
    let container: Container | undefined;
    try {
      const created = await createJupyterContainer(loaded, daemon, settings, owner, leash);
      ({ container } = created);
      await loaded.nameUser(
        container,
        (await loaded.answered(container.inspect(), "container inspect")).Config.User,
        home,
      );
      const attach = { stream: true, stdin: true, stdout: true, hijack: true };
      const input = stopContainer ? await loaded.answered(container.attach(attach), "container attach") : undefined;
      await loaded.answered(container.start(), "container start");
      const started = new JupyterContainer({ daemon, package: loaded, leash, ...created }, input, settings.token);
      await started.#open(settings.options, created.mounts);
      return started;
    } catch (cause) {
      if (container) await loaded.removeContainer(container).catch(() => {});
      await leash.release();
      if (FencedError.isInstance(cause)) throw cause;
      const said = loaded.dockerReason(cause).replaceAll(settings.token, "<token>");
      throw new BackendUnavailableError(`The container of ${settings.image} could not be started: ${said}`, {
        remedy:
          "Check that the container's name and the port are free, and correct the option that the daemon complains about.",
        cause,
      });
    }
  }

  /** The port on 127.0.0.1 on which the server is reachable. */
  get port(): number {
    return this.#port;
  }

  /** Starts to collect refused requests; returns a function that returns them. */
  collectRefusals(): () => readonly NetworkDecision[] {
    return this.#gate?.collect() ?? (() => []);
  }

  /** Why it ended, once it has. */
  get ended(): string | undefined {
    return this.#ended;
  }

  /**
   * How a program ended that the container's memory limit killed since the last call; `undefined` if it killed none, or
   * that is unknown.
   */
  async outOfMemory(options: DockerJupyterServerOptions): Promise<string | undefined> {
    const kills = await this.#memoryKills().catch(() => 0);
    if (kills <= this.#kills) return undefined;
    this.#kills = kills;
    const limit = this.#package.memoryLimit(options);
    const size = limit === undefined ? "" : ` (limit: ${Math.round(limit / 1_048_576)} MiB)`;
    return `the kernel was killed because its container ran out of memory${size}; process less data at a time`;
  }

  /** How many processes the kernel has killed for lack of memory, by control groups of version 2 or 1. */
  async #memoryKills(): Promise<number> {
    const files = ["/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];
    const asked = this.#package.execProgram(this.#container, ["cat", ...files]);
    const { stdin, stdout } = this.#package.splitOutputs(await asked);
    try {
      const text = await this.#package.answered(readText(stdout), "container exec", 10_000);
      return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
    } finally {
      stdin.destroy();
    }
  }

  /** The container's last lines of output, without the token. */
  async log(): Promise<string> {
    const asked = this.#container.logs({ stdout: true, stderr: true, tail: 20, follow: false });
    const log = await this.#package.answered(asked, "container logs", 10_000).catch(() => undefined);
    const pieces: Buffer[] = [];
    if (log) new this.#package.OutputDemultiplexer((_stream, bytes) => pieces.push(bytes)).push(log);
    return Buffer.concat(pieces).toString().replaceAll(this.#token, "<token>");
  }

  /** Ends the container. Removes it if asked to, even if it has already ended. */
  async end(remove: boolean): Promise<void> {
    if (remove) await this.#package.removeContainer(this.#container);
    else await this.#package.answered(this.#container.kill(), "container kill", 20_000).catch(() => {});
    await this.letGo();
  }

  /** Releases the container without ending it. */
  async letGo(): Promise<void> {
    this.#end();
    await this.#gate?.close();
    this.#input?.end();
    if (this.#input instanceof Duplex) this.#input.destroy();
    await this.#leash.release();
    this.#daemon.release();
  }

  /** Finds out how the server is reached. A container that has already ended is only marked as ended. */
  async #open(options: DockerJupyterServerOptions, mounts: readonly MountedSource[]): Promise<void> {
    const { NetworkSettings, State } = await this.#inspect();
    this.#port = Number(NetworkSettings.Ports[publishedPort]?.[0]?.HostPort ?? 0);
    if (!State.Running) this.#end();
    else if (networkOf(options).policy === "open") this.#tell([]);
    else await this.#openGate(options, mounts);
  }

  /** Sends the token and further variables to a container that ends with this program; the server waits for them. */
  #tell(variables: readonly (readonly [name: string, value: string])[]): void {
    const all = [["TOKEN", this.#token] as const, ...variables];
    this.#input?.write([...all.map(([name, value]) => `${name}=${value}`), "\n"].join("\n"));
  }

  async #openGate(options: DockerJupyterServerOptions, mounts: readonly MountedSource[]): Promise<void> {
    try {
      this.#gate = await openContainerGate(this.#package, this.#container, {
        policy: networkOf(options).policy,
        innerPort,
        port: options.exposePort ?? 0,
        mounts,
        onLost: (reason) => void this.#lostGate(reason),
      });
    } catch (error) {
      if (await this.#isRunning()) throw error;
      this.#end();
      return;
    }
    this.#port = this.#gate.port;
    // Variables from the options take precedence.
    const variables = Object.entries(this.#gate.variables).filter(([name]) => options.env?.[name] === undefined);
    this.#tell(variables);
  }

  /** When a container ends, so does the supervisor in it, which may be noticed first: the daemon gets a moment to tell. */
  async #lostGate(reason: string): Promise<void> {
    await sleep(lastWordsMs, undefined, { ref: false });
    const running = await this.#isRunning();
    this.#end(running ? `the connection to it is broken: ${reason}` : undefined);
  }

  /** False if the daemon does not answer. */
  async #isRunning(): Promise<boolean> {
    return this.#inspect().then(
      ({ State }) => State.Running,
      () => false,
    );
  }

  #inspect(): ReturnType<Container["inspect"]> {
    return this.#package.answered(this.#container.inspect(), "container inspect");
  }

  #end(reason = "the container ended"): void {
    this.#ended ??= reason;
  }
}
