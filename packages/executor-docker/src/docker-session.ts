import path from "node:path";
import type { Duplex } from "node:stream";
import { ExecutorStoppedError, InvalidInputError, type ExecutorCapabilities, type NetworkDecision } from "@fenced/core";
import { ContainerLeash, findDaemon, type Daemon } from "@fenced/docker-daemon";
import { EgressProxy } from "@fenced/egress";
import {
  type BackendFiles,
  commandLineCapabilities,
  findPlaceLanguages,
  hostFunctionLanguages,
  Leash,
  programsOf,
  SessionDirectories,
  type BlockEvent,
  type BlockOutcome,
  type BlockRun,
  type FunctionPlaces,
  type PlaceLanguages,
  type ProgramRun,
} from "@fenced/executor-kit";
import {
  type InterpretBlock,
  type InterpretingSession,
  outcomeOf,
  type ProgramEnd,
  PublishedPorts,
  SessionNetwork,
  type StatefulPlace,
} from "@fenced/executor-kit/supervisor";
import { defaultImage, memorySentence, ownerLabel, workspacePath } from "./container/container-options.ts";
import { leaveContainer, type UsedContainer } from "./container/leave-container.ts";
import { openContainer, type OpenContainer } from "./container/open-container.ts";
import { containerNetwork, enterNetwork } from "./network/container-network.ts";
import { blockCommand, blockVariables, sessionMark } from "./run/block-program.ts";
import type { BlockRunner } from "./run/exec-runner.ts";
import { interpreterPlace } from "./run/interpreter-place.ts";
import { keepWarm } from "./run/keep-warm.ts";
import { openCalls } from "./run/open-calls.ts";
import { runProgram } from "./run/run-program.ts";
import type { SessionRequest } from "./session-request.ts";
import { BoundWorkspace } from "./workspace/bound-workspace.ts";
import type { BlockFile } from "./workspace/container-workspace.ts";
import { VolumeWorkspace } from "./workspace/volume-workspace.ts";
import { writeBlock } from "./workspace/write-block.ts";

/** A container and what blocks find in it. */
interface ReadyContainer extends UsedContainer {
  readonly languages: PlaceLanguages;
  /** Variables that tell programs where the proxy is, if there is one. */
  readonly networkVariables: Readonly<Record<string, string>>;
}

/** That of a block which runs from memory. */
const noFile: BlockFile = { inContainer: "" };

/** Everything that exists while the executor is started. The next block replaces a container that broke down. */
export class DockerSession implements InterpretingSession {
  readonly #request: SessionRequest;
  readonly #directories: SessionDirectories;
  readonly #leash: Leash;
  readonly #network: SessionNetwork | undefined;
  #containerLeash: ContainerLeash;
  #published: PublishedPorts | undefined;
  #daemon: Daemon;
  #current: ReadyContainer | undefined;
  #opening: Promise<ReadyContainer> | undefined;
  #closed = false;

  private constructor(request: SessionRequest, daemon: Daemon, directories: SessionDirectories, leash: Leash) {
    this.#request = request;
    this.#daemon = daemon;
    this.#directories = directories;
    this.#leash = leash;
    this.#containerLeash = this.#leashContainers();
    this.#network = SessionNetwork.of(containerNetwork(request.options).policy, EgressProxy);
  }

  /** Finds the daemon, creates the directories and starts the container. */
  static async open(request: SessionRequest, signal: AbortSignal): Promise<DockerSession> {
    const daemon = await findDaemon(request.options.docker);
    const { workDir } = request.options;
    const workDirectory = workDir === undefined ? undefined : path.resolve(workDir);
    const directories = await SessionDirectories.plan({ ...request, workDirectory });
    // Before there is anything to remove, since this program may die at any moment.
    const leash = new Leash({ mark: { name: sessionMark, value: request.id }, ...directories.leashed });
    const session = new DockerSession(request, daemon, directories, leash);
    try {
      await directories.make();
      await session.#ready(signal);
      session.#published = await session.#publish();
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  /** Returns the container, or a new one if the last one was lost. */
  async #ready(signal: AbortSignal): Promise<ReadyContainer> {
    if (this.#closed) throw new ExecutorStoppedError("The executor is stopped", { remedy: "Call start() again." });
    if (this.#current && !this.#current.container.lost) return this.#current;
    this.#opening ??= this.#open(signal).finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  get capabilities(): Partial<ExecutorCapabilities> {
    if (!this.#current) return {};
    const { container, languages } = this.#current;
    const names = [...languages.found.keys()];
    return {
      ...commandLineCapabilities(names),
      hostFunctions: container.runner.openCalls ? hostFunctionLanguages(names) : [],
    };
  }

  get missing(): ReadonlyMap<string, string> {
    return this.#current?.languages.missing ?? new Map();
  }

  /** The work directory's files. */
  get files(): BackendFiles {
    if (this.#current) return this.#current.workspace.files;
    throw new ExecutorStoppedError("The executor is not started", { remedy: "Call start() first." });
  }

  functionPlaces(): Omit<FunctionPlaces, "owner"> {
    return {
      python: `${this.#directory}/functions`,
      commands: `${this.#directory}/bin`,
      pythonPackages: `${this.#directory}/packages`,
      javascript: workspacePath,
    };
  }

  async openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    const { container } = await this.#ready(new AbortController().signal);
    this.#directories.claimFunctionsPackage();
    return openCalls(container.runner, accept);
  }

  async *run(block: BlockRun, interpret?: InterpretBlock): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const { options } = this.#request;
    const ready = await this.#ready(block.signal);
    const language = ready.languages.found.get(block.language);
    if (!language) {
      throw new InvalidInputError(`No command runs ${block.language}`, { remedy: "Restart the executor." });
    }
    const needsFile = interpret === undefined || block.filename !== undefined;
    const file = needsFile ? await writeBlock(ready.workspace, block, language.extension) : noFile;
    const env = blockVariables(block, this.#request, {
      network: ready.networkVariables,
      places: this.functionPlaces(),
    });
    const refusals = this.#network?.collect();
    let network: readonly NetworkDecision[] | undefined;
    let end: ProgramEnd;
    let endedAt: number;
    let problem: string | undefined;
    try {
      const argv = blockCommand(language, file.inContainer, options.initCommand);
      const stdin = block.stdin === undefined ? {} : { stdin: block.stdin };
      const { signal } = block;
      end = yield* interpret?.(env, signal) ?? ready.container.runner.run({ argv, env, ...stdin, signal });
    } finally {
      // Do not count copying files back towards the block's time.
      endedAt = performance.now();
      network = refusals?.();
      problem = await this.#cleanUp(ready, file, block);
    }
    if (end.outOfMemory) yield { type: "stderr", data: memorySentence(options) };
    if (problem !== undefined) yield { type: "stderr", data: problem };
    return {
      ...outcomeOf(end),
      endedAt,
      ...(network && { network }),
      ...(file.onHost !== undefined && { codeFile: file.onHost }),
    };
  }

  async *runProgram(program: ProgramRun): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const ready = await this.#ready(program.signal);
    const places = { network: ready.networkVariables, places: this.functionPlaces() };
    return yield* runProgram(ready, { ...program, env: blockVariables(program, this.#request, places) }, this.#request);
  }

  async interpreterPlace(signal: AbortSignal): Promise<StatefulPlace> {
    const { container, languages, networkVariables } = await this.#ready(signal);
    const places = { network: networkVariables, places: this.functionPlaces() };
    const env = blockVariables({ env: this.#request.options.env ?? {} }, this.#request, places);
    return interpreterPlace(
      { container, languages },
      { options: this.#request.options, env, directory: this.#directory },
    );
  }

  get ports(): ReadonlyMap<number, number> {
    return this.#published?.ports ?? new Map();
  }

  get workspacePath(): string {
    return workspacePath;
  }

  /** The work directory on this host, which code may be able to change. */
  get boundDirectory(): string {
    return this.#directories.workDirectory;
  }

  async repair(signal: AbortSignal): Promise<void> {
    await this.#ready(signal);
  }

  async reset(signal: AbortSignal): Promise<void> {
    const { container } = await this.#ready(signal);
    try {
      await container.runner.reset();
    } catch {
      // It broke down just now; a new container has no processes either.
      await container.end(true).catch(() => {});
      await this.#ready(signal);
    }
  }

  async #publish(): Promise<PublishedPorts> {
    const { dockerPorts = [] } = this.#request.options;
    const runner = (): BlockRunner | undefined => this.#current?.container.runner;
    if (dockerPorts.length > 0 && !runner()?.connect) {
      throw new InvalidInputError("This container has no Python, through which `dockerPorts` could be reached", {
        remedy: "Use an image that has Python 3.8 or later, or leave `dockerPorts` out.",
      });
    }
    return PublishedPorts.open(new Map(dockerPorts.map((port) => [port, 0])), (port) => runner()?.connect?.(port));
  }

  /** Ends and deletes everything that the options do not keep. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#published?.close();
    await this.#opening?.catch(() => {});
    const current = this.#current;
    this.#current = undefined;
    try {
      if (current) await leaveContainer(current, this.#request.options);
      // Skipped if the container could not be ended: it then ends when this program does.
      await this.#containerLeash.release();
    } finally {
      await this.#network?.close();
      await this.#directories.remove();
      await this.#leash.release();
      this.#daemon.release();
    }
  }

  /** A directory of the session in the container. */
  get #directory(): string {
    return `/tmp/fenced-${this.#request.id.slice(0, 8)}`;
  }

  /** Never rejects, since that would lose the block's result. */
  async #cleanUp(
    { container, workspace }: ReadyContainer,
    file: BlockFile,
    block: BlockRun,
  ): Promise<string | undefined> {
    if (container.lost) return undefined;
    const temporary =
      block.filename === undefined && file !== noFile && (this.#request.options.cleanupTempFiles ?? true);
    if (temporary) await workspace.removeBlock(file).catch(() => {});
    return workspace.settle();
  }

  async #open(signal: AbortSignal): Promise<ReadyContainer> {
    const { options, id, table, givenLanguages, onReplaced } = this.#request;
    const old = this.#current;
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
        directory: this.#directory,
        programs: [...programsOf(table), "rm"],
      },
      signal,
    );
    const image = { name: `the image ${options.image ?? defaultImage}`, remedy: "use an image that has it" };
    const languages = findPlaceLanguages(table, givenLanguages, opened.container.inventory, image);
    const { container, foreign } = opened;
    const equipment = await this.#equip(opened);
    this.#current = { container, languages, foreign, ...equipment };
    const places = { network: equipment.networkVariables, places: this.functionPlaces() };
    keepWarm(this.#current, options, blockVariables({ env: options.env ?? {} }, this.#request, places));
    container.whenLost(this.#request.onLost);
    if (old) onReplaced();
    return this.#current;
  }

  async #discard({ container, foreign }: ReadyContainer): Promise<void> {
    const lost = this.#daemon;
    this.#daemon = await findDaemon(this.#request.options.docker);
    if (this.#daemon.address !== lost.address) {
      await this.#containerLeash.release();
      this.#containerLeash = this.#leashContainers();
    }
    if (!foreign) await container.end(true).catch(() => {});
    lost.release();
  }

  #leashContainers(): ContainerLeash {
    const { options, id } = this.#request;
    const { stopContainer = true, autoRemove = true } = options;
    const end = stopContainer ? (autoRemove ? "remove" : "kill") : "keep";
    return new ContainerLeash({ transport: this.#daemon.transport, label: `${ownerLabel}=${id}`, end });
  }

  /** Prepares what blocks need besides the container; if that fails, releases the container. */
  async #equip(opened: OpenContainer): Promise<Pick<ReadyContainer, "workspace" | "networkVariables">> {
    const { container, kind, foreign, hasNetwork } = opened;
    const network = hasNetwork ? undefined : this.#network;
    try {
      const networkVariables = network ? await enterNetwork(network, container.runner, this.#request.options) : {};
      if (kind === "bind") return { workspace: new BoundWorkspace(this.#directories), networkVariables };
      const workspace = new VolumeWorkspace(this.#daemon.docker, container, this.#directories);
      await workspace.prepare();
      return { workspace, networkVariables };
    } catch (error) {
      if (foreign) container.detach();
      else await container.end(true).catch(() => {});
      throw error;
    }
  }
}
