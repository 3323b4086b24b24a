import { randomUUID } from "node:crypto";
import { type ExecutorCapabilities, InvalidInputError } from "@fenced/core";
import { chooseRuntime, ContainerLeash, type Daemon, daemonFacts, findDaemon } from "@fenced/docker-daemon";
import { EgressProxy } from "@fenced/egress";
import {
  type CommandLineRequest,
  findPlaceLanguages,
  programsPlace,
  Leash,
  type LeashOptions,
  type PlaceEnd,
  programsOf,
  SessionDirectories,
} from "@fenced/executor-kit";
import {
  type Connection,
  type Connector,
  newAddress,
  type PlaceWorkspace,
  PublishedPorts,
  requestedSettings,
  type SessionAddress,
  sessionMark,
  SessionNetwork,
  sessionToJson,
  SupervisedBackend,
} from "@fenced/executor-kit/supervisor";
import { containerNetwork, defaultImage, memorySentence, ownerLabel } from "./container/container-options.ts";
import { openContainer, type OpenContainer } from "./container/open-container.ts";
import { openWorkspace } from "./container/open-workspace.ts";
import type { RunningContainer } from "./container/running-container.ts";
import type { DockerExecutorOptions } from "./docker-executor-options.ts";
import type { LeftContainer } from "./left-session.ts";

interface DockerRequest extends CommandLineRequest<DockerExecutorOptions> {
  readonly containerName: string;
  /** A session to connect to instead of creating the first container. */
  readonly left: LeftContainer | undefined;
}

/** Connects to containers of one daemon, and has what outlives a container while the executor is started. */
export class DockerConnector implements Connector {
  readonly #request: DockerRequest;
  readonly #directories: SessionDirectories;
  readonly #leash: Leash;
  #containerLeash: ContainerLeash;
  #published: PublishedPorts | undefined;
  #made: Promise<void> | undefined;
  #daemon: Daemon;
  /** The last container that was connected, which published ports lead to. */
  #current: RunningContainer | undefined;
  /** What the option `runtime: "auto"` has led to. Code that breaks a container must not get a weaker one. */
  #runtime: { readonly name: string | undefined } | undefined;
  /** The container could not be ended, so the leash must end it when this program ends. */
  #isLeftBehind = false;
  /** The container that the next one replaces, and that is still to be removed. */
  #replaced: OpenContainer | undefined;

  private constructor(request: DockerRequest, daemon: Daemon, directories: SessionDirectories, leash: Leash) {
    this.#request = request;
    this.#daemon = daemon;
    this.#directories = directories;
    this.#leash = leash;
    this.#containerLeash = this.#leashContainers();
  }

  /** Finds the daemon, and creates the directories. */
  static async open(request: DockerRequest): Promise<DockerConnector> {
    const daemon = await findDaemon(request.options.docker);
    const directories = await SessionDirectories.plan({ ...request, workDirectory: request.options.workDir });
    // Started before there is anything to remove, since this program may die at any moment.
    const leash = new Leash(leashed(request, directories));
    const connector = new DockerConnector(request, daemon, directories, leash);
    try {
      // Those of a session that is elsewhere are not needed here.
      if (!request.left) await connector.#makeDirectories();
      connector.#published = await connector.#publish();
      return connector;
    } catch (error) {
      await connector.close();
      throw error;
    }
  }

  /** Makes places of its containers. */
  backend(): SupervisedBackend {
    const { options } = this.#request;
    const { initCommand } = options;
    const wrap = initCommand === undefined ? undefined : (words: readonly string[]) => afterInit(initCommand, words);
    const network = SessionNetwork.of(containerNetwork(options).policy, EgressProxy);
    const settings = { ...requestedSettings(this.#request), network, memorySentence: memorySentence(options), wrap };
    return new SupervisedBackend(settings, this);
  }

  /** The work directory on this host, which code may be able to change; `undefined` if there is none yet. */
  get boundDirectory(): string | undefined {
    return this.#made && this.#directories.workDirectory;
  }

  async connect({ signal }: { readonly signal: AbortSignal }): Promise<Connection> {
    const { options, id, table } = this.#request;
    const isFirst = this.#current === undefined;
    const left = isFirst ? this.#request.left : undefined;
    if (!isFirst) await this.#findDaemonAgain();
    const directory = `/tmp/fenced-${id.slice(0, 8)}`;
    if (!left) await this.#makeDirectories();
    const { keepAliveMs = 0 } = options;
    const address = keepAliveMs > 0 ? (left ?? newAddress()) : undefined;
    const opened = await openContainer(
      {
        ...(left && { left }),
        ...(address && { address }),
        // A pull has been done for the first one.
        options: { ...options, runtime: await this.#chooseRuntime(), ...(!isFirst && { pull: pullAgain(options) }) },
        owner: id,
        name: this.#request.containerName,
        daemon: this.#daemon,
        leash: this.#containerLeash,
        directories: this.#directories,
        directory,
        programs: programsOf(table),
      },
      signal,
    );
    try {
      const connection = await this.#connectionTo(opened, directory, address);
      if (options.runtime === "auto") this.#runtime = { name: opened.runtime };
      this.#current = opened.container;
      return connection;
    } catch (error) {
      if (left) await opened.container.leave();
      else await discard(opened);
      throw error;
    }
  }

  /** Deletes everything that the options do not keep. */
  async close({ isDetached = false }: Pick<PlaceEnd, "isDetached"> = {}): Promise<void> {
    const { left } = this.#request;
    // A session that could not be connected to is as it was.
    const goesOn = isDetached || (this.#current ? this.#current.goesOn : left !== undefined);
    this.#published?.close();
    try {
      await this.#discardReplaced();
      if (!this.#isLeftBehind) await this.#containerLeash.release();
    } finally {
      await this.#directories.remove(goesOn);
      await this.#leash.release();
      this.#daemon.release();
    }
  }

  async #connectionTo(
    opened: OpenContainer,
    directory: string,
    address: SessionAddress | undefined,
  ): Promise<Connection> {
    const { container, kind, foreign, hasNetwork, kernel } = opened;
    const { options, table, givenLanguages, id } = this.#request;
    const { supervisor } = container;
    if (this.#published && !supervisor) {
      throw new InvalidInputError("`dockerPorts` needs Python in the container, and this one has none", {
        remedy: "Use an image that has Python 3.8 or later, or leave `dockerPorts` out.",
      });
    }
    const image = programsPlace(`the image ${options.image ?? defaultImage}`, options.env);
    const workspace = await openWorkspace(opened, {
      ...this.#request,
      directories: this.#directories,
      daemon: this.#daemon,
    });
    // Without Python, nothing in the container carries connections to the proxy.
    const isCutOff = !supervisor && containerNetwork(options).byDefault === true;
    return {
      runner: container.runner,
      languages: findPlaceLanguages(table, givenLanguages, container.inventory, image),
      workspace,
      directory,
      lost: container.lost,
      isLosing: () => container.isLosing,
      hasNetwork: hasNetwork || isCutOff,
      outlivesSession: options.stopContainer === false || foreign,
      isLeft: kind === "left",
      ...(address && { session: sessionToJson({ id, ...address }, { container: container.id }) }),
      capabilities: { ...(kernel && { kernel }), ...(isCutOff && cutOff) },
      ...(this.#published && { ports: this.#published.ports }),
      end: async ({ isReplaced, isDetached = false }) => {
        if (isDetached || container.isTakenOver) await container.leave();
        else if (isReplaced) await this.#replace(opened);
        else await this.#leave(opened, workspace);
      },
    };
  }

  /** Removes a container that another one replaces, at once only if its daemon may answer. */
  async #replace(opened: OpenContainer): Promise<void> {
    const isLater = opened === this.#replaced || opened.container.error !== undefined;
    this.#replaced = opened;
    // Each attempt at a daemon that hangs takes long, and `connect` finds out whether it answers.
    if (!isLater) await this.#discardReplaced();
  }

  async #discardReplaced(): Promise<void> {
    const replaced = this.#replaced;
    if (replaced && (await discard(replaced)) && this.#replaced === replaced) this.#replaced = undefined;
  }

  /** Depending on the options, ends and removes the container, or keeps it without anything that blocks started. */
  async #leave(opened: OpenContainer, workspace: PlaceWorkspace): Promise<void> {
    const { container, foreign } = opened;
    if (this.#replaced === opened) this.#replaced = undefined;
    const { autoRemove = true, stopContainer = true } = this.#request.options;
    const isKept = !stopContainer || foreign;
    try {
      if (container.error) {
        if (autoRemove && !isKept) await container.end(true);
        return;
      }
      await workspace.settle(undefined);
      if (!isKept) {
        await container.end(autoRemove);
        if (!autoRemove) warnKept(container.name, "was stopped and kept");
        return;
      }
      try {
        await container.runner.reset();
      } finally {
        // Detach even from a supervisor that code has stopped: if it resumes, it notices that its input has ended and
        // ends everything.
        container.detach();
      }
      if (!foreign) warnKept(container.name, "keeps running");
    } catch (error) {
      this.#isLeftBehind = true;
      throw error;
    }
  }

  async #chooseRuntime(): Promise<string | undefined> {
    if (this.#runtime) return this.#runtime.name;
    const { runtimes } = await daemonFacts(this.#daemon);
    return chooseRuntime(runtimes, this.#request.options.runtime);
  }

  #makeDirectories(): Promise<void> {
    this.#made ??= this.#directories.make();
    return this.#made;
  }

  async #publish(): Promise<PublishedPorts | undefined> {
    const { dockerPorts = [] } = this.#request.options;
    if (dockerPorts.length === 0) return undefined;
    const ports = new Map(dockerPorts.map((port) => [port, 0]));
    return PublishedPorts.open(ports, (port) => this.#current?.supervisor?.connect(port));
  }

  async #findDaemonAgain(): Promise<void> {
    const lost = this.#daemon;
    this.#daemon = await findDaemon(this.#request.options.docker);
    await this.#discardReplaced();
    if (this.#daemon.address !== lost.address) {
      this.#replaced = undefined;
      await this.#containerLeash.release();
      this.#containerLeash = this.#leashContainers();
    }
    lost.release();
  }

  #leashContainers(): ContainerLeash {
    const { options, id } = this.#request;
    const { stopContainer = true, autoRemove = true, keepAliveMs = 0 } = options;
    const end = stopContainer && keepAliveMs === 0 ? (autoRemove ? "remove" : "kill") : "keep";
    return new ContainerLeash({ transport: this.#daemon.transport, label: `${ownerLabel}=${id}`, end });
  }
}

const cutOff: Partial<ExecutorCapabilities> = { network: "none" };

/** What ends with this program: nothing of a session that outlives it. */
function leashed({ id, options }: DockerRequest, { leashed: all, sessionDirectory }: SessionDirectories): LeashOptions {
  if ((options.keepAliveMs ?? 0) === 0) return { mark: { name: sessionMark, value: id }, ...all };
  return { mark: { name: sessionMark, value: randomUUID() }, remove: [sessionDirectory] };
}

function pullAgain({ pull = "missing" }: DockerExecutorOptions): NonNullable<DockerExecutorOptions["pull"]> {
  return pull === "always" ? "missing" : pull;
}

/** Removes a container that another one replaces. Returns whether that worked; never rejects. */
async function discard({ container, foreign }: OpenContainer): Promise<boolean> {
  if (!foreign) {
    return container.end(true).then(
      () => true,
      () => false,
    );
  }
  container.detach();
  return true;
}

function warnKept(name: string, how: string): void {
  process.emitWarning(`The container ${name} ${how}, as configured in the executor's options.`, {
    code: "FENCED_DOCKER_KEPT",
    detail: `Use it again with \`containerName: "${name}", reuse: true\`, or remove it: docker rm --force --volumes ${name}`,
  });
}

/** Runs a command after `initCommand` in the same shell. */
function afterInit(initCommand: string, words: readonly string[]): string[] {
  return ["sh", "-c", `{ ${initCommand}\n} && exec "$@"`, "fenced", ...words];
}
