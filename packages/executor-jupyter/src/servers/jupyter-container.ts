import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { Duplex } from "node:stream";
import { text as readText } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import {
  BackendUnavailableError,
  FencedError,
  type NetworkDecision,
  type NetworkPolicy,
  packageIndexes,
} from "@fenced/core";
import type { Container, ContainerCreateOptions, ContainerLeash, Daemon, MountedSource } from "@fenced/docker-daemon";
import { openContainerGate, type ContainerGate, type DaemonPackage } from "./container-gate.ts";
import type { DockerJupyterServerOptions } from "./docker-server-options.ts";

/** How to start a container, in addition to the user's options. */
export interface ContainerSettings {
  readonly options: DockerJupyterServerOptions;
  readonly image: string;
  readonly token: string;
  /** The host directory that is bound to `/workspace`: its name on the daemon's host, and its owner. */
  readonly bind?: { readonly source: string; readonly owner: { readonly uid: number; readonly gid: number } };
}

const startProgram: string = readFileSync(new URL("./start-container.sh", import.meta.url), "utf8");

const innerPort = 8888;
const publishedPort = `${innerPort}/tcp`;
/** Milliseconds for the daemon to say that a container has ended. */
const lastWordsMs = 500;

const ownerLabel = "fenced.jupyter";
/** The home directory of a user without one, which `start-container.sh` creates. */
const home = "/tmp/home";

/** Where a bound `workDir` is in the container, and the work directory of the image that this package builds. */
export const workspacePath = "/workspace";

/** A container in which a Jupyter server runs. */
export class JupyterContainer {
  readonly #daemon: Daemon;
  readonly #package: DaemonPackage;
  readonly #container: Container;
  readonly #leash: ContainerLeash;
  readonly #input: NodeJS.ReadWriteStream | undefined;
  readonly #token: string;
  #port: number = 0;
  #gate: ContainerGate | undefined;
  #ended: string | undefined;
  #kills: number = 0;

  private constructor(
    held: { daemon: Daemon; package: DaemonPackage; container: Container; leash: ContainerLeash },
    input: NodeJS.ReadWriteStream | undefined,
    token: string,
  ) {
    this.#daemon = held.daemon;
    this.#package = held.package;
    this.#container = held.container;
    this.#leash = held.leash;
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
      const created = await createContainer(loaded, daemon, settings, owner, leash);
      ({ container } = created);
      await loaded.nameUser(
        container,
        (await loaded.answered(container.inspect(), "container inspect")).Config.User,
        home,
      );
      const attach = { stream: true, stdin: true, stdout: true, hijack: true };
      const input = stopContainer ? await loaded.answered(container.attach(attach), "container attach") : undefined;
      await loaded.answered(container.start(), "container start");
      const started = new JupyterContainer({ daemon, package: loaded, container, leash }, input, settings.token);
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

/** The network of a container with these options: what its code may reach, and the network mode for the daemon. */
export function networkOf(options: DockerJupyterServerOptions): {
  readonly policy: NetworkPolicy;
  readonly mode: string | undefined;
} {
  const { network, dockerNetwork, hardened = true, stopContainer = true } = options;
  const closed = hardened && stopContainer && dockerNetwork === undefined;
  const policy = network ?? (closed ? { allow: packageIndexes } : "open");
  return { policy, mode: policy === "open" ? dockerNetwork : "none" };
}

/** A container that has not been started, and what was checked of the directory that it is to mount. */
interface CreatedContainer {
  readonly container: Container;
  readonly mounts: readonly MountedSource[];
}

/** @throws InvalidInputError if the daemon cannot keep what the options promise. */
async function createContainer(
  loaded: DaemonPackage,
  daemon: Daemon,
  settings: ContainerSettings,
  owner: string,
  leash: ContainerLeash,
): Promise<CreatedContainer> {
  const { options, bind } = settings;
  const facts = await loaded.daemonFacts(daemon);
  loaded.checkLimits(daemon, facts, options);
  const planned = await containerOptions(loaded, daemon, settings, owner);
  const create = (given: ContainerCreateOptions) => leash.creating(() => loaded.createContainer(daemon.docker, given));
  if (options.hardened === false || bind === undefined) return { container: await create(planned), mounts: [] };
  const option = options.bindDir === undefined ? "workDir" : "bindDir";
  const { source } = bind;
  const checked = await loaded.refuseSockets(daemon, [{ option, source, shared: true }]);
  // A `bindDir` is a path of another host, or of the one around this container.
  const isOurs = options.bindDir === undefined;
  return {
    container: await loaded.createWithFilter(daemon, facts, planned, create),
    mounts: isOurs ? [{ source, target: workspacePath, identity: checked.get(source) }] : [],
  };
}

async function containerOptions(
  loaded: DaemonPackage,
  daemon: Daemon,
  settings: ContainerSettings,
  owner: string,
): Promise<ContainerCreateOptions> {
  const { options, image, token, bind } = settings;
  const { stopContainer: leashed = true, readOnlyRootFilesystem = false } = options;
  const { Config: config } = await loaded.answered(daemon.docker.getImage(image).inspect(), "image inspect");
  const user = await userOf(loaded, daemon, settings, config.User);
  const { policy, mode } = networkOf(options);
  const closed = policy !== "open";
  const { containerName = `fenced-jupyter-${owner}` } = options;
  const named = mode === "none" ? loaded.ownHostName(containerName) : undefined;
  const env = {
    ...options.env,
    // A leashed container gets it over its standard input, because all its programs can read its variables.
    ...(leashed ? { FENCED_LEASHED: "1" } : { TOKEN: token }),
    // The image that this package builds reads its input itself.
    ...(options.image === undefined ? { FENCED_SERVES: "1" } : {}),
  };
  return {
    Image: image,
    name: containerName,
    ...(user === undefined ? {} : { User: user }),
    ...(named && { Hostname: named.Hostname }),
    Entrypoint: ["/bin/sh", "-c", startProgram, "fenced"],
    Cmd: [...words(config.Entrypoint), ...words(config.Cmd)],
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...(closed ? {} : { ExposedPorts: { [publishedPort]: {} } }),
    Labels: { ...options.labels, "io.fenced.executor": "jupyter", [ownerLabel]: owner },
    OpenStdin: leashed,
    StdinOnce: leashed,
    AttachStdin: leashed,
    AttachStdout: leashed,
    HostConfig: {
      ...loaded.limitsConfig(options),
      ...loaded.kernelFiles(user, options.hardened),
      AutoRemove: options.autoRemove ?? true,
      ...(closed
        ? {}
        : { PortBindings: { [publishedPort]: [{ HostIp: "127.0.0.1", HostPort: String(options.exposePort ?? 0) }] } }),
      ...(mode === undefined ? {} : { NetworkMode: mode }),
      ...(named && { ExtraHosts: named.ExtraHosts }),
      ...(bind === undefined ? {} : { Binds: [`${bind.source}:${workspacePath}`] }),
      ...(bind === undefined && readOnlyRootFilesystem
        ? { Mounts: [{ Type: "volume", Source: "", Target: workspacePath }] }
        : {}),
    },
  };
}

/** Keeps an image's own user, unless that is root. */
async function userOf(
  loaded: DaemonPackage,
  daemon: Daemon,
  { options, bind }: ContainerSettings,
  imageUser: string | undefined,
): Promise<string | undefined> {
  const { hardened = true, user } = options;
  const own = imageUser ?? "";
  if (user !== undefined || !hardened || !/^(?:|root|0)(?::|$)/.test(own)) return user;
  if (!bind) return loaded.userForVolume(undefined, hardened);
  const { rootless } = await loaded.daemonFacts(daemon);
  return loaded.userForBind({ user, hardened }, { owner: bind.owner, given: true }, rootless).name;
}

function words(value: string | readonly string[] | undefined | null): readonly string[] {
  if (value === undefined || value === null) return [];
  return typeof value === "string" ? [value] : value;
}
