import { readFileSync } from "node:fs";
import { type NetworkPolicy, packageIndexes } from "@fenced/core";
import type {
  Container,
  ContainerCreateOptions,
  ContainerLeash,
  Daemon,
  MountedSource,
  RuntimeKernel,
} from "@fenced/docker-daemon";
import type { DaemonPackage } from "./container-gate.ts";
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

/** The port on which the server listens in the container. */
export const innerPort = 8888;
/** The same, as the daemon names it. */
export const publishedPort: string = `${innerPort}/tcp`;

/** The label by which a leash finds a container. */
export const ownerLabel = "fenced.jupyter";
/** The home directory of a user without one, which `start-container.sh` creates. */
export const home = "/tmp/home";

/** Where a bound `workDir` is in the container, and the work directory of the image that this package builds. */
export const workspacePath = "/workspace";

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
export interface CreatedContainer {
  readonly container: Container;
  readonly mounts: readonly MountedSource[];
  readonly systemKernel: RuntimeKernel;
}

/**
 * Creates a container for a Jupyter server, without starting it.
 *
 * @throws InvalidInputError if the daemon cannot keep what the options promise.
 */
export async function createJupyterContainer(
  loaded: DaemonPackage,
  daemon: Daemon,
  settings: ContainerSettings,
  owner: string,
  leash: ContainerLeash,
): Promise<CreatedContainer> {
  const { options, bind } = settings;
  const facts = await loaded.daemonFacts(daemon);
  loaded.checkLimits(daemon, facts, options);
  const systemKernel = loaded.runtimeKernel(facts.runtimes);
  const planned = await containerOptions(loaded, daemon, settings, owner);
  const create = (given: ContainerCreateOptions) => leash.creating(() => loaded.createContainer(daemon.docker, given));
  if (options.hardened === false || bind === undefined) {
    const container = await loaded.createWithFilter(daemon, facts, planned, false, create);
    return { container, mounts: [], systemKernel };
  }
  const option = options.bindDir === undefined ? "workDir" : "bindDir";
  const { source } = bind;
  const checked = await loaded.refuseSockets(daemon, [{ option, source, shared: true }]);
  // A `bindDir` is a path of another host, or of the one around this container.
  const isOurs = options.bindDir === undefined;
  return {
    container: await loaded.createWithFilter(daemon, facts, planned, true, create),
    mounts: isOurs ? [{ source, target: workspacePath, identity: checked.get(source) }] : [],
    systemKernel,
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
    // Always: gVisor would take the daemon's /dev/null as input, and give that file of the machine to the container's user.
    OpenStdin: true,
    StdinOnce: leashed,
    AttachStdin: leashed,
    AttachStdout: leashed,
    HostConfig: {
      ...loaded.limitsConfig(options, loaded.runtimeKernel((await loaded.daemonFacts(daemon)).runtimes)),
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
