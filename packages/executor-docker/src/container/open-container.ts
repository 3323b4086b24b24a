import path from "node:path";
import { BackendUnavailableError, FencedError, InvalidInputError } from "@fenced/core";
import {
  answered,
  checkLimits,
  type Container,
  type DaemonClient,
  daemonFacts,
  dockerReason,
  isNotFound,
  isPath,
  type MountedSource,
  nameUser,
  refuseReplaced,
  refuseSockets,
  removeContainer,
  type RuntimeKernel,
  runtimeKernel,
  userForBind,
  userForVolume,
} from "@fenced/docker-daemon";
import { PlaceGone } from "@fenced/executor-kit";
import {
  sessionHasEnded,
  sessionServerCommand,
  supervisorCommand,
  type SupervisorConfig,
} from "@fenced/executor-kit/supervisor";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";
import type { LeftContainer } from "../left-session.ts";
import { containerNetwork, containerOptions, ownerLabel, workspacePathOf } from "./container-options.ts";
import { type ContainerRequest, createWithImage, imageOf } from "./create-with-image.ts";
import { isSame, removeProbe, socketOf, writeProbe } from "./probe-file.ts";
import { RunningContainer } from "./running-container.ts";
import { isMissingSource, lacksPython, lacksShell, noServer, noShell, notBound, notMounted } from "./start-failures.ts";

/** A container that is ready for blocks. */
export interface OpenContainer {
  readonly container: RunningContainer;
  /** How the work directory is provided in the container; `left`: by an earlier program, which has left the session. */
  readonly kind: "bind" | "volume" | "left";
  /** True if somebody else created it, so it is neither ended nor removed. */
  readonly foreign: boolean;
  /** True if it has its own network. */
  readonly hasNetwork: boolean;
  /** The name of its OCI runtime; `undefined` for the daemon's default. */
  readonly runtime: string | undefined;
  readonly kernel: RuntimeKernel;
}

/**
 * Opens the container to reuse, or creates one. If the daemon sees the same file system as this process, which is
 * tested rather than assumed, the work directory is mounted into the container; otherwise, a volume is used instead.
 *
 * @throws BackendUnavailableError if no container can be started.
 */
export async function openContainer(request: ContainerRequest, signal: AbortSignal): Promise<OpenContainer> {
  try {
    if (request.left) return await openLeft(request, request.left, signal);
    const existing = request.options.reuse === true ? await findContainer(request) : undefined;
    if (existing) return await openExisting(request, existing, signal);
    const checked = await checkRequest(request);
    return (await openBound(request, checked, signal)) ?? (await openWithVolume(request, checked, signal));
  } catch (cause) {
    signal.throwIfAborted();
    if (lacksShell(cause)) throw noShell(imageOf(request), cause);
    if (request.address && lacksPython(cause)) throw noServer(imageOf(request), cause);
    if (cause instanceof PlaceGone) {
      throw sessionHasEnded(`in the container ${request.name}`, request.left !== undefined, cause);
    }
    if (FencedError.isInstance(cause)) throw cause;
    throw new BackendUnavailableError(
      `A container of the image "${imageOf(request)}" could not be started: ${dockerReason(cause)}`,
      {
        remedy: whatToCheck(request),
        cause,
      },
    );
  }
}

function whatToCheck(request: ContainerRequest): string {
  const { runtime } = request.options;
  if (runtime === undefined) {
    return "Correct the option that the daemon complains about, or check whether it can start any containers.";
  }
  // With an input, for the sake of the machine's /dev/null: see the README, "A kernel between code and the machine".
  const command = `docker run --rm -i --runtime ${runtime} ${imageOf(request)} true`;
  return `Correct the option that the daemon complains about, or check whether its runtime works: ${command}`;
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

/** @throws PlaceGone if it has ended; SessionInUseError if another program uses it. */
async function openLeft(
  { daemon, options, owner, directory, address }: ContainerRequest,
  left: LeftContainer,
  signal: AbortSignal,
): Promise<OpenContainer> {
  const found = daemon.docker.getContainer(left.container);
  const info = await answered(found.inspect(), "container inspect").catch((error: unknown) => {
    if (isNotFound(error)) throw new PlaceGone("its container was removed");
    throw error;
  });
  const name = info.Name.replace("/", "");
  if (info.State.Paused) throw isPaused(name);
  if (!info.State.Running || info.Config.Labels[ownerLabel] !== left.id) throw new PlaceGone("its container has ended");
  const entry = {
    name,
    running: true,
    leashed: false,
    supervisor: "main" as const,
    owner,
    directory,
    workspace: workspacePathOf(options),
    socket: undefined,
    user: undefined,
    ...(address && { session: { ...address, keepAliveMs: options.keepAliveMs ?? 0, takeOver: left.takeOver } }),
  };
  const container = await RunningContainer.open(daemon, found, entry, signal);
  const ran = await ranBy(daemon, info.HostConfig.Runtime);
  return { container, kind: "left", foreign: false, hasNetwork: hasNetwork(options), ...ran };
}

function isPaused(name: string): BackendUnavailableError {
  return new BackendUnavailableError(`The container ${name} is paused`, {
    remedy: `Let it go on, and connect again: docker unpause ${name}`,
  });
}

async function openExisting(
  request: ContainerRequest,
  info: ContainerInfo,
  signal: AbortSignal,
): Promise<OpenContainer> {
  const { daemon, name, options, directories } = request;
  checkNetwork(options, info);
  const probe = writeProbe(directories);
  const mounts = [ownMount(request)];
  const entry = {
    name,
    running: info.State.Running,
    leashed: info.Config.StdinOnce && !info.State.Running && isOurs(info),
    supervisor: { command: supervisorCommand(configOf(request, probe, false, mounts)) },
    owner: request.owner,
    directory: request.directory,
    workspace: workspacePathOf(request.options),
    socket: path.join(directories.workDirectory, socketOf(probe)),
    user: options.user,
  };
  try {
    const container = await RunningContainer.open(daemon, daemon.docker.getContainer(info.Id), entry, signal);
    const bound = await isSame(directories, probe, container);
    if (bound) await checkMounts(mounts, container, () => container.detach());
    const networked = info.HostConfig.NetworkMode !== "none";
    const ran = await ranBy(daemon, info.HostConfig.Runtime);
    return { container, kind: bound ? "bind" : "volume", foreign: !isOurs(info), hasNetwork: networked, ...ran };
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
  const kept = options.stopContainer === false || options.autoRemove === false || request.address !== undefined;
  if (kept && !directories.given) return undefined;
  const { rootless } = await daemonFacts(daemon);
  const user = userForBind({ user: options.user, hardened: options.hardened ?? true }, directories, rootless);
  if (user.giveTo) await directories.giveTo(user.giveTo);
  const probe = writeProbe(directories);
  try {
    const source = options.bindDir ?? directories.workDirectory;
    const mounts = [ownMount(request), ...checked];
    const container = await openNew(request, { user: user.name, probe, source, mounts }, signal);
    if (await isSame(directories, probe, container)) {
      await checkMounts(mounts, container, () => container.end(true));
      const ran = await ranBy(daemon, options.runtime);
      return { container, kind: "bind", foreign: false, hasNetwork: hasNetwork(options), ...ran };
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
  const { options, directories } = request;
  // Its files would have to travel, and no program may be there to carry them.
  if (request.address && directories.given) throw notMounted(directories);
  const user = userForVolume(options.user, options.hardened ?? true);
  const container = await openNew(request, { user, probe: undefined, source: undefined, mounts }, signal);
  await checkMounts(mounts, container, () => container.end(true));
  const ran = await ranBy(request.daemon, options.runtime);
  return { container, kind: "volume", foreign: false, hasNetwork: hasNetwork(options), ...ran };
}

/** What runs a container. @param name - of its runtime; `undefined` for the daemon's default. */
async function ranBy(
  daemon: DaemonClient,
  name: string | undefined,
): Promise<Pick<OpenContainer, "runtime" | "kernel">> {
  const { runtimes } = await daemonFacts(daemon);
  return { runtime: name, kernel: runtimeKernel(runtimes, name === "" ? undefined : name) };
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

function ownMount({ directories, options }: ContainerRequest): MountedSource {
  const { workDirectory: source, identity } = directories;
  return { source, target: workspacePathOf(options), identity };
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
  const { options, daemon, name, owner, directory, address } = request;
  const { workDirectory } = request.directories;
  const leashed = options.stopContainer ?? true;
  const config = configOf(request, binding.probe, leashed, binding.mounts);
  const command = address ? sessionServerCommand(address.socket, config) : supervisorCommand(config);
  const isServer = address !== undefined;
  const { kernel } = await ranBy(daemon, options.runtime);
  const plan = { name, owner, command, user: binding.user, bindSource: binding.source, isServer, kernel };
  const created = await createWithImage(request, containerOptions(options, plan), binding.source !== undefined, signal);
  try {
    signal.throwIfAborted();
    await nameUser(created, binding.user, `${directory}/home`);
    const supervisor = leashed ? ("main" as const) : { command };
    const { keepAliveMs = 0 } = options;
    const session = address && { ...address, keepAliveMs, takeOver: false };
    const isShared = binding.probe !== undefined && !session;
    const socket = isShared ? path.join(workDirectory, socketOf(binding.probe)) : undefined;
    const user = binding.user;
    const entry = {
      name,
      running: false,
      leashed,
      supervisor,
      owner,
      directory,
      workspace: workspacePathOf(options),
      socket,
      user,
      ...(session && { session }),
    };
    return await RunningContainer.open(daemon, created, entry, signal);
  } catch (error) {
    await removeContainer(created).catch(() => {});
    throw error;
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
    workspace: workspacePathOf(options),
    programs,
    mounts: mounts.map(({ target }) => target),
    alone,
    ...(probe === undefined ? {} : { probe: `${workspacePathOf(options)}/${probe}` }),
    ...(options.env?.["PATH"] === undefined ? {} : { path: options.env["PATH"] }),
  };
}
