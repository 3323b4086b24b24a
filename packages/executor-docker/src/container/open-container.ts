import path from "node:path";
import { BackendUnavailableError, FencedError, InvalidInputError } from "@fenced/core";
import {
  answered,
  checkLimits,
  type Container,
  type ContainerCreateOptions,
  type ContainerLeash,
  createContainer,
  createWithFilter,
  type Daemon,
  daemonFacts,
  dockerReason,
  ensureImage,
  isNotFound,
  isPath,
  type MountedSource,
  nameUser,
  refuseReplaced,
  refuseSockets,
  removeContainer,
  statusCode,
  userForBind,
  userForVolume,
} from "@fenced/docker-daemon";
import type { SessionDirectories } from "@fenced/executor-kit";
import { supervisorCommand, type SupervisorConfig } from "@fenced/executor-kit/supervisor";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";
import { containerNetwork, containerOptions, defaultImage, ownerLabel, workspacePath } from "./container-options.ts";
import { RunningContainer } from "./running-container.ts";

/** Settings that all containers of a session share. */
export interface ContainerRequest {
  readonly options: DockerExecutorOptions;
  /** The executor's id. */
  readonly owner: string;
  readonly name: string;
  readonly daemon: Daemon;
  readonly directories: SessionDirectories;
  /** Removes the session's containers if this program dies. */
  readonly leash: ContainerLeash;
  /** A directory of the session in the container. */
  readonly directory: string;
  /** Programs that the supervisor looks for. */
  readonly programs: readonly string[];
}

/** A container that is ready for blocks. */
export interface OpenContainer {
  readonly container: RunningContainer;
  /** How the work directory is provided in the container. */
  readonly kind: "bind" | "volume";
  /** True if somebody else created it, so it is neither ended nor removed. */
  readonly foreign: boolean;
  /** True if it has its own network. */
  readonly hasNetwork: boolean;
}

/**
 * Opens the container to reuse, or creates one. If the daemon sees the same file system as this process, which is
 * tested rather than assumed, the work directory is mounted into the container; otherwise, a volume is used instead.
 *
 * @throws BackendUnavailableError if no container can be started.
 */
export async function openContainer(request: ContainerRequest, signal: AbortSignal): Promise<OpenContainer> {
  try {
    const existing = request.options.reuse === true ? await findContainer(request) : undefined;
    if (existing) return await openExisting(request, existing, signal);
    const checked = await checkRequest(request);
    return (await openBound(request, checked, signal)) ?? (await openWithVolume(request, checked, signal));
  } catch (cause) {
    signal.throwIfAborted();
    if (lacksShell(cause)) throw noShell(request, cause);
    if (FencedError.isInstance(cause)) throw cause;
    throw new BackendUnavailableError(
      `A container of the image "${imageOf(request)}" could not be started: ${dockerReason(cause)}`,
      {
        remedy: "Correct the option that the daemon complains about, or check whether it can start any containers.",
        cause,
      },
    );
  }
}

/**
 * Checks what only the daemon and its host can tell about the options of a new container.
 *
 * @returns what else of this host was checked, to compare with what is mounted.
 * @throws InvalidInputError if one of them cannot be kept.
 */
async function checkRequest({ options, daemon, directories }: ContainerRequest): Promise<readonly MountedSource[]> {
  checkLimits(daemon, await daemonFacts(daemon), options);
  if (options.hardened === false) return [];
  const volumes = Object.keys(options.extraVolumes ?? {}).map((source) => ({ option: "extraVolumes", source }));
  const { bindDir, workDir } = options;
  const own = workDir === undefined ? [] : [{ option: "workDir", source: directories.workDirectory, shared: true }];
  const bound = bindDir === undefined ? [] : [{ option: "bindDir", source: bindDir, shared: true }];
  const checked = await refuseSockets(daemon, [...own, ...bound, ...volumes]);
  return (
    Object.entries(options.extraVolumes ?? {})
      // Next to a `bindDir`, paths are those of another host, or of the one around this container.
      .filter(([source]) => bindDir === undefined && (isPath(source) || checked.has(source)))
      .map(([source, { bind: target }]) => ({ source, target, identity: checked.get(source) }))
  );
}

/** Details of a container, such as its main process and whether it is running. */
type ContainerInfo = Awaited<ReturnType<Container["inspect"]>>;

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
  const { daemon, name, options, directories } = request;
  checkNetwork(options, info);
  const probe = directories.writeOwn(probeQuestion, "probe");
  const mounts = [ownMount(directories)];
  const entry = {
    name,
    running: info.State.Running,
    leashed: info.Config.StdinOnce && !info.State.Running && isOurs(info),
    supervisor: { command: supervisorCommand(configOf(request, probe, false, mounts)) },
    owner: request.owner,
    directory: request.directory,
    socket: path.join(directories.workDirectory, socketOf(probe)),
    user: options.user,
  };
  try {
    const container = await RunningContainer.open(daemon, daemon.docker.getContainer(info.Id), entry, signal);
    const bound = await isSame(directories, probe, container);
    if (bound) await checkMounts(mounts, container, () => container.detach());
    const networked = info.HostConfig.NetworkMode !== "none";
    return { container, kind: bound ? "bind" : "volume", foreign: !isOurs(info), hasNetwork: networked };
  } finally {
    await removeProbe(directories, probe);
  }
}

/**
 * Checks that the network of a container to reuse fits the policy, since it is fixed at creation. Without an explicit
 * policy, any network is accepted.
 */
function checkNetwork(
  options: DockerExecutorOptions,
  { Name: name, HostConfig: { NetworkMode: mode } }: ContainerInfo,
) {
  const { mode: wanted, byDefault } = containerNetwork(options);
  if (wanted !== "none" || mode === "none" || byDefault) return;
  throw new InvalidInputError(
    `The container ${name.replace("/", "")} has a network (${mode}), so a network policy cannot be enforced`,
    { remedy: `Create it with \`docker run --network none\`, choose another container, or set \`network: "open"\`.` },
  );
}

function hasNetwork(options: DockerExecutorOptions): boolean {
  return containerNetwork(options).mode !== "none";
}

function isOurs({ Config: config }: ContainerInfo): boolean {
  return config.Labels[ownerLabel] !== undefined;
}

/** @returns `undefined` if the work directory cannot be bound. */
async function openBound(
  request: ContainerRequest,
  checked: readonly MountedSource[],
  signal: AbortSignal,
): Promise<OpenContainer | undefined> {
  const { options, directories, daemon } = request;
  // A temporary directory would be gone by the time a kept container is reused.
  const kept = options.stopContainer === false || options.autoRemove === false;
  if (kept && !directories.given) return undefined;
  const { rootless } = await daemonFacts(daemon);
  const user = userForBind({ user: options.user, hardened: options.hardened ?? true }, directories, rootless);
  if (user.giveTo) await directories.giveTo(user.giveTo);
  const probe = directories.writeOwn(probeQuestion, "probe");
  try {
    const source = options.bindDir ?? directories.workDirectory;
    const mounts = [ownMount(directories), ...checked];
    const container = await openNew(request, { user: user.name, probe, source, mounts }, signal);
    if (await isSame(directories, probe, container)) {
      await checkMounts(mounts, container, () => container.end(true));
      return { container, kind: "bind", foreign: false, hasNetwork: hasNetwork(options) };
    }
    const said = container.inventory.probe ?? "it is not there";
    await container.end(true);
    if (options.bindDir !== undefined) throw notBound(options.bindDir, directories, said);
    return undefined;
  } catch (error) {
    if (!isMissingSource(error)) throw error;
    if (options.bindDir !== undefined) throw notBound(options.bindDir, directories, dockerReason(error));
    return undefined;
  } finally {
    await removeProbe(directories, probe);
  }
}

async function openWithVolume(
  request: ContainerRequest,
  mounts: readonly MountedSource[],
  signal: AbortSignal,
): Promise<OpenContainer> {
  const { options } = request;
  const user = userForVolume(options.user, options.hardened ?? true);
  const container = await openNew(request, { user, probe: undefined, source: undefined, mounts }, signal);
  await checkMounts(mounts, container, () => container.end(true));
  return { container, kind: "volume", foreign: false, hasNetwork: hasNetwork(options) };
}

/** What differs between a mounted work directory and a volume. */
interface Binding {
  /** `uid:gid`; `undefined` for the image's user. */
  readonly user: string | undefined;
  /** The probe file's name. */
  readonly probe: string | undefined;
  readonly source: string | undefined;
  /** What the supervisor identifies. */
  readonly mounts: readonly MountedSource[];
}

function ownMount({ workDirectory: source, identity }: SessionDirectories): MountedSource {
  return { source, target: workspacePath, identity };
}

/** @param release - called if something else was mounted. */
async function checkMounts(
  mounts: readonly MountedSource[],
  { inventory }: RunningContainer,
  release: () => void | Promise<void>,
): Promise<void> {
  try {
    await refuseReplaced(mounts, inventory);
  } catch (error) {
    await release();
    throw error;
  }
}

async function openNew(request: ContainerRequest, binding: Binding, signal: AbortSignal): Promise<RunningContainer> {
  const { options, daemon, name, owner, directory } = request;
  const { workDirectory } = request.directories;
  const leashed = options.stopContainer ?? true;
  const command = supervisorCommand(configOf(request, binding.probe, leashed, binding.mounts));
  const plan = { name, owner, command, user: binding.user, bindSource: binding.source };
  const created = await createWithImage(request, containerOptions(options, plan), binding.source !== undefined, signal);
  try {
    signal.throwIfAborted();
    await nameUser(created, binding.user, `${directory}/home`);
    const supervisor = leashed ? ("main" as const) : { command };
    const socket = binding.probe === undefined ? undefined : path.join(workDirectory, socketOf(binding.probe));
    const entry = { name, running: false, leashed, supervisor, owner, directory, socket, user: binding.user };
    return await RunningContainer.open(daemon, created, entry, signal);
  } catch (error) {
    await removeContainer(created).catch(() => {});
    throw error;
  }
}

async function createWithImage(
  request: ContainerRequest,
  settings: ContainerCreateOptions,
  bound: boolean,
  signal: AbortSignal,
): Promise<Container> {
  const { options, daemon, name, leash } = request;
  const facts = await daemonFacts(daemon);
  const create = (given: ContainerCreateOptions) => leash.creating(() => createContainer(daemon.docker, given));
  const shares = bound || Object.keys(options.extraVolumes ?? {}).some(isPath);
  const attempt = () =>
    shares && options.hardened !== false ? createWithFilter(daemon, facts, settings, create) : create(settings);
  const image = { image: imageOf(request), pull: options.pull ?? "missing", onProgress: options.onPullProgress };
  if (image.pull === "always") await ensureImage(daemon.docker, image, signal);
  try {
    // Inspect the image only if the daemon turns out to lack it.
    return await attempt().catch(async (error: unknown) => {
      if (!isNotFound(error)) throw error;
      await ensureImage(daemon.docker, image, signal);
      return attempt();
    });
  } catch (cause) {
    if (statusCode(cause) !== 409 && !/name.* in use/i.test(dockerReason(cause))) throw cause;
    throw new InvalidInputError(`The container name "${name}" is taken`, {
      remedy: `Choose another \`containerName\`, set \`reuse: true\` to use that one, or remove it: docker rm -f ${name}`,
      cause,
    });
  }
}

function configOf(
  { directory, programs, options }: ContainerRequest,
  probe: string | undefined,
  alone: boolean,
  mounts: readonly MountedSource[],
): SupervisorConfig {
  return {
    directory,
    workspace: workspacePath,
    programs,
    mounts: mounts.map(({ target }) => target),
    alone,
    ...(probe === undefined ? {} : { probe: `${workspacePath}/${probe}` }),
    ...(options.env?.["PATH"] === undefined ? {} : { path: options.env["PATH"] }),
  };
}

const probeQuestion = `fenced-${process.pid}-${Math.random()}`;

/** The name of the socket that a supervisor creates next to its probe file. */
function socketOf(probe: string): string {
  return `${probe}.sock`;
}

/** Removes the probe file, and the socket that the supervisor creates next to it. */
async function removeProbe(directories: SessionDirectories, probe: string): Promise<void> {
  await directories.removeOwn(probe);
  await directories.removeOwn(socketOf(probe));
}

/** True if the container saw the probe file, and this process sees what the container added to it. */
async function isSame(directories: SessionDirectories, probe: string, container: RunningContainer): Promise<boolean> {
  return container.inventory.probe === probeQuestion && (await directories.readOwn(probe)) === `${probeQuestion}r`;
}

/** True if the directory to mount is missing or not shared, which only the text of the daemon's error tells. */
function isMissingSource(error: unknown): boolean {
  const known = /bind source path does not exist|no such file or directory|not shared from the host|mounts denied/i;
  return statusCode(error) !== undefined && known.test(dockerReason(error)) && !/exec:/.test(dockerReason(error));
}

function notBound(bindDir: string, directories: SessionDirectories, reason: string): InvalidInputError {
  return new InvalidInputError(
    `\`bindDir\` ${JSON.stringify(bindDir)} is not ${directories.workDirectory} on the daemon's host: ${reason}`,
    { remedy: "Set it to the path that this machine's `workDir` has on the daemon's host." },
  );
}

/**
 * True if a container could not start because its image has no shell, which is reported by the daemon, its runtime, or
 * the init process that was to start the shell.
 */
function lacksShell(error: unknown): boolean {
  const said = FencedError.isInstance(error) ? error.message : dockerReason(error);
  return /exec sh failed: No such file|"sh": executable file not found|`sh`:? (?:executable file )?not found/i.test(
    said,
  );
}

function noShell(request: ContainerRequest, cause: unknown): InvalidInputError {
  return new InvalidInputError(`The image "${imageOf(request)}" has no shell named \`sh\`, which starts all programs`, {
    remedy: "Use an image with a shell, such as python:3-slim; distroless images have one in their debug variants.",
    option: "image",
    cause,
  });
}

function imageOf({ options }: ContainerRequest): string {
  return options.image ?? defaultImage;
}
