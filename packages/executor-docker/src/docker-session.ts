import { InvalidInputError } from "@fenced/core";
import { ContainerLeash, type Daemon, findDaemon, giveDirectory } from "@fenced/docker-daemon";
import { EgressProxy } from "@fenced/egress";
import {
  type CommandLineSessionRequest,
  findPlaceLanguages,
  programsPlace,
  Leash,
  type PlaceLanguages,
  programsOf,
  SessionDirectories,
} from "@fenced/executor-kit";
import {
  PublishedPorts,
  requestedSettings,
  sessionMark,
  SessionNetwork,
  SupervisedSession,
} from "@fenced/executor-kit/supervisor";
import {
  containerNetwork,
  defaultImage,
  enterNetwork,
  memorySentence,
  ownerLabel,
  workspacePath,
} from "./container/container-options.ts";
import { BoundWorkspace, type ContainerEquipment, ContainerPlace } from "./container/container-place.ts";
import { openContainer, type OpenContainer } from "./container/open-container.ts";
import type { RunningContainer } from "./container/running-container.ts";
import { VolumeWorkspace } from "./container/volume-workspace.ts";
import type { DockerExecutorOptions } from "./docker-executor-options.ts";

interface SessionRequest extends CommandLineSessionRequest<DockerExecutorOptions> {
  readonly containerName: string;
}

/** Everything that exists while the executor is started. The next block replaces a container that broke down. */
export class DockerSession extends SupervisedSession<ContainerPlace> {
  readonly #request: SessionRequest;
  readonly #directories: SessionDirectories;
  readonly #leash: Leash;
  readonly #network: SessionNetwork | undefined;
  #containerLeash: ContainerLeash;
  #published: PublishedPorts | undefined;
  #daemon: Daemon;

  private constructor(request: SessionRequest, daemon: Daemon, directories: SessionDirectories, leash: Leash) {
    const { id, options } = request;
    const { initCommand } = options;
    const network = SessionNetwork.of(containerNetwork(options).policy, EgressProxy);
    const directory = `/tmp/fenced-${id.slice(0, 8)}`;
    const wrap = initCommand === undefined ? undefined : (words: readonly string[]) => afterInit(initCommand, words);
    const places = { workspacePath, directory, network, memorySentence: memorySentence(options) };
    super({ ...requestedSettings(request), ...places, wrap });
    this.#request = request;
    this.#daemon = daemon;
    this.#directories = directories;
    this.#leash = leash;
    this.#network = network;
    this.#containerLeash = this.#leashContainers();
  }

  /** Finds the daemon, creates the directories and starts the container. */
  static async open(request: SessionRequest, signal: AbortSignal): Promise<DockerSession> {
    const daemon = await findDaemon(request.options.docker);
    const directories = await SessionDirectories.plan({ ...request, workDirectory: request.options.workDir });
    // Started before there is anything to remove, since this program may die at any moment.
    const leash = new Leash({ mark: { name: sessionMark, value: request.id }, ...directories.leashed });
    const session = new DockerSession(request, daemon, directories, leash);
    try {
      await directories.make();
      session.#published = await session.#publish();
      await session.ready(signal);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  /** The work directory on this host, which code may be able to change. */
  get boundDirectory(): string {
    return this.#directories.workDirectory;
  }

  /** A container that is kept still needs its supervisor, to end what blocks have started. */
  override stopping(): void {
    if (this.current?.kept !== true) super.stopping();
  }

  protected override claimFunctionsPackage(): void {
    this.#directories.claimFunctionsPackage();
  }

  protected override factsOf(place: ContainerPlace): ReturnType<SupervisedSession["factsOf"]> {
    const facts = super.factsOf(place);
    // Without Python, nothing in the container carries connections to the proxy.
    const isCutOff = !place.supervisor && containerNetwork(this.#request.options).byDefault === true;
    return {
      ...facts,
      capabilities: { ...facts.capabilities, ...(isCutOff && { network: "none" as const }) },
      ...(this.#published && { ports: this.#published.ports }),
    };
  }

  protected override async openPlace(old: ContainerPlace | undefined, signal: AbortSignal): Promise<ContainerPlace> {
    const { options, id, table, givenLanguages } = this.#request;
    if (old) await this.#discard(old);
    const opened = await openContainer(
      {
        options: old
          ? { ...options, pull: options.pull === "always" ? "missing" : (options.pull ?? "missing") }
          : options,
        owner: id,
        name: this.#request.containerName,
        daemon: this.#daemon,
        leash: this.#containerLeash,
        directories: this.#directories,
        directory: this.directory,
        programs: programsOf(table),
      },
      signal,
    );
    if (this.#published && !opened.container.supervisor) throw await this.#withoutPorts(opened);
    const place = programsPlace(`the image ${options.image ?? defaultImage}`, options.env);
    const languages = findPlaceLanguages(table, givenLanguages, opened.container.inventory, place);
    return new ContainerPlace(opened.container, await this.#equip(opened, languages), options);
  }

  /** Ends and deletes everything that the options do not keep. */
  protected override async closeWith(place: ContainerPlace | undefined): Promise<void> {
    this.#published?.close();
    try {
      await place?.leave();
      // Skipped if the container could not be ended, so that it ends when this program does.
      await this.#containerLeash.release();
    } finally {
      await this.#network?.close();
      await this.#directories.remove();
      await this.#leash.release();
      this.#daemon.release();
    }
  }

  async #publish(): Promise<PublishedPorts | undefined> {
    const { dockerPorts = [] } = this.#request.options;
    if (dockerPorts.length === 0) return undefined;
    const ports = new Map(dockerPorts.map((port) => [port, 0]));
    return PublishedPorts.open(ports, (port) => this.current?.runner.connect?.(port));
  }

  async #withoutPorts({ container, foreign }: OpenContainer): Promise<InvalidInputError> {
    if (foreign) container.detach();
    else await container.end(true).catch(() => {});
    return new InvalidInputError("`dockerPorts` needs Python in the container, and this one has none", {
      remedy: "Use an image that has Python 3.8 or later, or leave `dockerPorts` out.",
    });
  }

  async #discard(place: ContainerPlace): Promise<void> {
    const lost = this.#daemon;
    this.#daemon = await findDaemon(this.#request.options.docker);
    if (this.#daemon.address !== lost.address) {
      await this.#containerLeash.release();
      this.#containerLeash = this.#leashContainers();
    }
    await place.discard();
    lost.release();
  }

  #leashContainers(): ContainerLeash {
    const { options, id } = this.#request;
    const { stopContainer = true, autoRemove = true } = options;
    const end = stopContainer ? (autoRemove ? "remove" : "kill") : "keep";
    return new ContainerLeash({ transport: this.#daemon.transport, label: `${ownerLabel}=${id}`, end });
  }

  /** Prepares what blocks need in addition to the container; releases the container if that fails. */
  async #equip(
    { container, kind, foreign, hasNetwork }: OpenContainer,
    languages: PlaceLanguages,
  ): Promise<ContainerEquipment> {
    const network = hasNetwork ? undefined : this.#network;
    try {
      const networkVariables = network ? await enterNetwork(network, container.runner, this.#request.options) : {};
      const equipment = { languages, networkVariables, foreign };
      const bound = kind === "bind";
      const workspace = bound ? new BoundWorkspace(this.#directories) : await this.#openVolume(container);
      return { ...equipment, workspace };
    } catch (error) {
      if (foreign) container.detach();
      else await container.end(true).catch(() => {});
      throw error;
    }
  }

  /** @throws InvalidInputError if nothing in the container can carry files. */
  async #openVolume({ id, inventory, supervisor }: RunningContainer): Promise<VolumeWorkspace> {
    const { workDir, image = defaultImage } = this.#request.options;
    if (!supervisor) {
      const what =
        workDir === undefined ? "The work directory is a volume" : "`workDir` cannot be mounted into the container";
      throw new InvalidInputError(
        `${what}, and files travel there only through Python, which the image "${image}" lacks`,
        {
          remedy:
            "Use an image that has Python 3.8 or later, or set `workDir` to a directory that the daemon can mount as /workspace, which a remote daemon cannot.",
        },
      );
    }
    await giveDirectory(this.#daemon.docker.getContainer(id), workspacePath, inventory.owner);
    const workspace = new VolumeWorkspace(this.#directories, {
      python: inventory.programs.get("python3") ?? inventory.programs.get("python") ?? "python3",
      supervisor,
      replaced: async () => (await this.ready(this.closing)).supervisor ?? supervisor,
    });
    await workspace.prepare();
    return workspace;
  }
}

/** Runs a command after `initCommand` in the same shell. */
function afterInit(initCommand: string, words: readonly string[]): string[] {
  return ["sh", "-c", `{ ${initCommand}\n} && exec "$@"`, "fenced", ...words];
}
