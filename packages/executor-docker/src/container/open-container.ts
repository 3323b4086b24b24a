import { BackendUnavailableError, FencedError, InvalidInputError } from "@fenced/core";
import type Docker from "dockerode";
import { dockerReason, isNotFound, statusCode, answered } from "../daemon/docker-error.ts";
import type { Daemon } from "../daemon/find-daemon.ts";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";
import { supervisorCommand, type SupervisorConfig } from "../supervisor/main-command.ts";
import type { BlockPlace } from "../workspace/block-place.ts";
import type { HostWorkspace } from "../workspace/host-workspace.ts";
import { containerOptions, defaultImage, ownerLabel, workspacePath } from "./container-options.ts";
import { userForBind, userForVolume, isRootless, type ContainerUser } from "./container-user.ts";
import { ensureImage } from "./ensure-image.ts";
import { removeContainer, RunningContainer } from "./running-container.ts";

/** What a session's containers have in common. */
export interface ContainerRequest {
  readonly options: DockerExecutorOptions;
  /** The executor's id. */
  readonly owner: string;
  readonly name: string;
  readonly daemon: Daemon;
  readonly workspace: HostWorkspace;
  /** A directory of the session in the container. */
  readonly directory: string;
  /** Programs to look for. */
  readonly programs: readonly string[];
}

/** A container that is ready for blocks. */
export interface OpenContainer {
  readonly container: RunningContainer;
  /** How the work directory gets there. */
  readonly kind: BlockPlace["kind"];
  /** Somebody else made it: it is neither ended nor removed. */
  readonly foreign: boolean;
}

/**
 * Opens the container that is to be used again, or makes one: with the work directory bound to it if the daemon sees the
 * same file system as this process, which is tried and not assumed; else with a volume in its place.
 *
 * @throws BackendUnavailableError if there is none to be had.
 */
export async function openContainer(request: ContainerRequest, signal: AbortSignal): Promise<OpenContainer> {
  try {
    const existing = request.options.reuse === true ? await findContainer(request) : undefined;
    if (existing) return await openExisting(request, existing, signal);
    return (await openBound(request, signal)) ?? (await openWithVolume(request, signal));
  } catch (cause) {
    signal.throwIfAborted();
    if (FencedError.isInstance(cause)) throw cause;
    throw new BackendUnavailableError(
      `No container of the image "${imageOf(request)}" could be started: ${dockerReason(cause)}`,
      {
        remedy: "Correct the option that the daemon complains about, or see whether it can start containers at all.",
        cause,
      },
    );
  }
}

/** The container with its main process, and whether it runs. */
type ContainerInfo = Awaited<ReturnType<Docker.Container["inspect"]>>;

async function findContainer({ daemon, name }: ContainerRequest): Promise<ContainerInfo | undefined> {
  try {
    return await answered(daemon.docker.getContainer(name).inspect(), "container inspect");
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

async function openExisting(
  request: ContainerRequest,
  info: ContainerInfo,
  signal: AbortSignal,
): Promise<OpenContainer> {
  const { daemon, name, options, workspace } = request;
  const probe = workspace.writeOwn(probeQuestion, "probe");
  const entry = {
    name,
    running: info.State.Running,
    leashed: info.Config.StdinOnce && !info.State.Running && isOurs(info),
    supervisor: { command: supervisorCommand(configOf(request, probe, false)) },
    directory: request.directory,
    workDirectory: workspace.workDirectory,
    socket: socketOf(probe),
    user: options.user,
  };
  try {
    const container = await RunningContainer.open(daemon, daemon.docker.getContainer(info.Id), entry, signal);
    const bound = await isSame(workspace, probe, container);
    return { container, kind: bound ? "bind" : "volume", foreign: !isOurs(info) };
  } finally {
    removeProbe(workspace, probe);
  }
}

function isOurs({ Config: config }: ContainerInfo): boolean {
  return config.Labels[ownerLabel] !== undefined;
}

/** @returns `undefined` if the work directory cannot be bound. */
async function openBound(request: ContainerRequest, signal: AbortSignal): Promise<OpenContainer | undefined> {
  const { options, workspace, daemon } = request;
  // A temporary directory is gone when a container that is kept is used again.
  const kept = options.stopContainer === false || options.autoRemove === false;
  if (kept && !workspace.given) return undefined;
  const rootless = await isRootless(daemon);
  const user = userForBind({ user: options.user, hardened: options.hardened ?? true }, workspace, rootless);
  if (user.giveTo) await workspace.giveTo(user.giveTo);
  const probe = workspace.writeOwn(probeQuestion, "probe");
  try {
    const container = await openNew(
      request,
      { user, probe, source: options.bindDir ?? workspace.workDirectory },
      signal,
    );
    if (await isSame(workspace, probe, container)) return { container, kind: "bind", foreign: false };
    const said = container.runner.inventory.probe ?? "it is not there";
    await container.end(true);
    if (options.bindDir !== undefined) throw notBound(options.bindDir, workspace, said);
    return undefined;
  } catch (error) {
    if (!isMissingSource(error)) throw error;
    if (options.bindDir !== undefined) throw notBound(options.bindDir, workspace, dockerReason(error));
    return undefined;
  } finally {
    removeProbe(workspace, probe);
  }
}

async function openWithVolume(request: ContainerRequest, signal: AbortSignal): Promise<OpenContainer> {
  const { options } = request;
  const user = userForVolume({ user: options.user, hardened: options.hardened ?? true });
  const container = await openNew(request, { user, probe: undefined, source: undefined }, signal);
  return { container, kind: "volume", foreign: false };
}

/** What differs between a bound work directory and a volume. */
interface Binding {
  readonly user: ContainerUser;
  /** The probe file's name. */
  readonly probe: string | undefined;
  readonly source: string | undefined;
}

async function openNew(request: ContainerRequest, binding: Binding, signal: AbortSignal): Promise<RunningContainer> {
  const { options, daemon, name, owner, directory } = request;
  const { workDirectory } = request.workspace;
  const leashed = options.stopContainer ?? true;
  const command = supervisorCommand(configOf(request, binding.probe, leashed));
  const plan = { name, owner, command, user: binding.user.name, bindSource: binding.source };
  const created = await createWithImage(request, containerOptions(options, plan), signal);
  try {
    signal.throwIfAborted();
    const supervisor = leashed ? ("main" as const) : { command };
    const socket = binding.probe === undefined ? undefined : socketOf(binding.probe);
    const places = { directory, workDirectory, socket };
    const entry = { name, running: false, leashed, supervisor, ...places, user: binding.user.name };
    return await RunningContainer.open(daemon, created, entry, signal);
  } catch (error) {
    await removeContainer(created).catch(() => {});
    throw error;
  }
}

async function createWithImage(
  request: ContainerRequest,
  create: Docker.ContainerCreateOptions,
  signal: AbortSignal,
): Promise<Docker.Container> {
  const { options, daemon, name } = request;
  const image = { image: imageOf(request), pull: options.pull ?? "missing", onProgress: options.onPullProgress };
  if (image.pull === "always") await ensureImage(daemon.docker, image, signal);
  try {
    // Only a daemon that lacks the image has to be asked about it.
    return await RunningContainer.create(daemon, create).catch(async (error: unknown) => {
      if (!isNotFound(error)) throw error;
      await ensureImage(daemon.docker, image, signal);
      return RunningContainer.create(daemon, create);
    });
  } catch (cause) {
    if (statusCode(cause) !== 409 && !/name.* in use/i.test(dockerReason(cause))) throw cause;
    throw new InvalidInputError(`There is a container named "${name}" already`, {
      remedy: `Choose another \`containerName\`, set \`reuse: true\` to use that one, or remove it: docker rm -f ${name}`,
      cause,
    });
  }
}

function configOf(
  { directory, programs, options }: ContainerRequest,
  probe: string | undefined,
  alone: boolean,
): SupervisorConfig {
  return {
    directory,
    probe: probe === undefined ? undefined : `${workspacePath}/${probe}`,
    programs,
    path: options.env?.["PATH"],
    alone,
  };
}

const probeQuestion = `fenced-${process.pid}-${Math.random()}`;

/** The name of the socket that a supervisor makes beside its probe file. */
function socketOf(probe: string): string {
  return `${probe}.sock`;
}

/** Removes the probe file, and the socket that the supervisor puts beside it. */
function removeProbe(workspace: HostWorkspace, probe: string): void {
  workspace.removeOwn(probe);
  workspace.removeOwn(socketOf(probe));
}

/** The container saw the probe file, and this process sees what the container added to it. */
async function isSame(workspace: HostWorkspace, probe: string, container: RunningContainer): Promise<boolean> {
  return container.runner.inventory.probe === probeQuestion && (await workspace.readOwn(probe)) === `${probeQuestion}r`;
}

/** Daemons say in words only that the directory to bind is not there, or not to be had. */
function isMissingSource(error: unknown): boolean {
  const known = /bind source path does not exist|no such file or directory|not shared from the host|mounts denied/i;
  return statusCode(error) !== undefined && known.test(dockerReason(error)) && !/exec:/.test(dockerReason(error));
}

function notBound(bindDir: string, workspace: HostWorkspace, reason: string): InvalidInputError {
  return new InvalidInputError(
    `\`bindDir\` ${JSON.stringify(bindDir)} is not what the daemon's host calls ${workspace.workDirectory}: ${reason}`,
    { remedy: "Give the path on the daemon's host of the directory that is mounted as `workDir` here." },
  );
}

function imageOf({ options }: ContainerRequest): string {
  return options.image ?? defaultImage;
}
