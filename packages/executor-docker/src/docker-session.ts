import path from "node:path";
import { BackendUnavailableError, ExecutorStoppedError, type WorkspaceFiles } from "@fenced/core";
import { Leash, type LanguageCommand } from "@fenced/executor-kit";
import { defaultImage } from "./container/container-options.ts";
import { openContainer, type OpenContainer } from "./container/open-container.ts";
import type { RunningContainer } from "./container/running-container.ts";
import { findDaemon, type Daemon } from "./daemon/find-daemon.ts";
import type { DockerExecutorOptions } from "./docker-executor-options.ts";
import { findLanguages, programsOf, type ContainerLanguages } from "./languages.ts";
import { BindPlace } from "./workspace/bind-place.ts";
import type { BlockPlace } from "./workspace/block-place.ts";
import { HostWorkspace } from "./workspace/host-workspace.ts";
import { VolumePlace } from "./workspace/volume-place.ts";

/** What a session is made for. */
export interface SessionRequest {
  readonly options: DockerExecutorOptions;
  /** The executor's id. */
  readonly id: string;
  readonly functionsModule: string;
  readonly table: Readonly<Record<string, LanguageCommand>>;
  /** Languages whose command the user gave. */
  readonly givenLanguages: ReadonlySet<string>;
  /** The container had broken down and was replaced: what was in it besides the work directory is gone. */
  readonly onReplaced: () => void;
}

/** A container and what blocks find in it. */
export interface ReadyContainer {
  readonly container: RunningContainer;
  readonly place: BlockPlace;
  readonly languages: ContainerLanguages;
  readonly foreign: boolean;
}

/** Everything that exists while the executor is started. A container that breaks down is replaced for the next block. */
export class DockerSession {
  readonly #request: SessionRequest;
  readonly #workspace: HostWorkspace;
  readonly #leash: Leash;
  #daemon: Daemon;
  #current: ReadyContainer | undefined;
  #opening: Promise<ReadyContainer> | undefined;
  #closed = false;

  private constructor(request: SessionRequest, daemon: Daemon, workspace: HostWorkspace) {
    this.#request = request;
    this.#daemon = daemon;
    this.#workspace = workspace;
    this.#leash = new Leash({
      mark: { name: sessionMark, value: request.id },
      remove: [workspace.sessionDirectory],
      removePrefixes: [path.join(workspace.workDirectory, workspace.filePrefix)],
      removeOwned: path.join(workspace.workDirectory, "node_modules", request.functionsModule),
    });
  }

  /** Finds the daemon, makes the directories, starts the container. */
  static async open(request: SessionRequest, signal: AbortSignal): Promise<DockerSession> {
    const daemon = await findDaemon(request.options.docker);
    const { workDir } = request.options;
    const given = workDir === undefined ? undefined : path.resolve(workDir);
    const workspace = await HostWorkspace.open(given, request.id).catch((error: unknown) => {
      daemon.release();
      throw error;
    });
    const session = new DockerSession(request, daemon, workspace);
    try {
      await session.ready(signal);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  /** The container, a new one if the last one is lost. */
  async ready(signal: AbortSignal): Promise<ReadyContainer> {
    if (this.#closed) throw new ExecutorStoppedError("The executor is stopped", { remedy: "Call start() again." });
    if (this.#current && !this.#current.container.lost) return this.#current;
    this.#opening ??= this.#open(signal).finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /** The container that is there now. */
  get current(): ReadyContainer | undefined {
    return this.#current;
  }

  /** The work directory's files. */
  get files(): WorkspaceFiles {
    if (this.#current) return this.#current.place.files;
    throw new ExecutorStoppedError("The executor is not started", { remedy: "Call start() first." });
  }

  /** The container's name. */
  get containerName(): string {
    return this.#request.options.containerName ?? `fenced-${this.#request.id}`;
  }

  /** A directory of the session in the container. */
  get directory(): string {
    return `/tmp/fenced-${this.#request.id.slice(0, 8)}`;
  }

  /** Ends all processes; the files stay. */
  async reset(signal: AbortSignal): Promise<void> {
    const { container } = await this.ready(signal);
    try {
      await container.runner.reset();
    } catch {
      // It broke down just now: a new one has no processes either.
      await container.end(true).catch(() => {});
      await this.ready(signal);
    }
  }

  /** Ends and deletes what the options do not say to keep. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#opening?.catch(() => {});
    const current = this.#current;
    this.#current = undefined;
    try {
      if (current) await this.#closeContainer(current);
    } finally {
      await this.#workspace.removeFunctionsPackage(this.#request.functionsModule, this.#request.id);
      await this.#workspace.remove();
      await this.#leash.release();
      this.#daemon.release();
    }
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
        name: this.containerName,
        daemon: this.#daemon,
        workspace: this.#workspace,
        directory: this.directory,
        programs: programsOf(table),
      },
      signal,
    );
    const inventory = opened.container.runner.inventory;
    const languages = findLanguages(table, givenLanguages, inventory, options.image ?? defaultImage);
    const place = await this.#place(opened, old);
    this.#current = { container: opened.container, place, languages, foreign: opened.foreign };
    if (old) onReplaced();
    return this.#current;
  }

  async #discard({ container, foreign }: ReadyContainer): Promise<void> {
    const lost = this.#daemon;
    this.#daemon = await findDaemon(this.#request.options.docker);
    if (!foreign) await container.end(true).catch(() => {});
    lost.release();
  }

  async #place({ container, kind }: OpenContainer, old: ReadyContainer | undefined): Promise<BlockPlace> {
    const isOwn = (file: string): boolean => this.#isOwn(file);
    if (kind === "bind") return new BindPlace(this.#workspace, isOwn);
    const place = new VolumePlace(
      { docker: this.#daemon.docker, id: container.id, runner: container.runner },
      this.#workspace,
      isOwn,
    );
    try {
      await place.prepare();
      return place;
    } catch (error) {
      if (!old) await container.end(true).catch(() => {});
      throw error;
    }
  }

  #isOwn(file: string): boolean {
    const { filePrefix } = this.#workspace;
    return file.startsWith(filePrefix) || file.startsWith(`node_modules/${this.#request.functionsModule}/`);
  }

  async #closeContainer({ container, place, foreign }: ReadyContainer): Promise<void> {
    const { stopContainer = true, autoRemove = true } = this.#request.options;
    if (container.lost) {
      if (stopContainer && autoRemove && !foreign) await container.end(true);
      return;
    }
    await place.settle();
    if (stopContainer && !foreign) {
      await container.end(autoRemove);
      if (!autoRemove) warnKept(container.name, "is kept, ended");
      return;
    }
    await container.runner.reset();
    container.detach();
    if (!foreign) warnKept(container.name, "runs on");
  }
}

/** The variable that all blocks of an executor have. */
export const sessionMark = "FENCED_SESSION";

function warnKept(name: string, how: string): void {
  process.emitWarning(`The container ${name} ${how}, as the executor's options say.`, {
    code: "FENCED_DOCKER_KEPT",
    detail: `Use it again with \`containerName: "${name}", reuse: true\`, or remove it: docker rm --force --volumes ${name}`,
  });
}

/** The error for a block that cannot be written to the work directory. */
export function notWritten(cause: unknown): BackendUnavailableError {
  return new BackendUnavailableError(`The block could not be written to the work directory: ${String(cause)}`, {
    remedy: "See that its disk is not full, with `files.list()` and `files.remove()`, and that it can be written to.",
    cause,
  });
}
