import type { ContainerCreateOptions, HostConfig, MountSettings } from "dockerode";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";
import { keeperCommand } from "../supervisor/main-command.ts";

/** Where the work directory is in the container. */
export const workspacePath = "/workspace";

/** A label of all of our containers: the executor that made it. */
export const ownerLabel = "fenced.executor";

/** What a container is made from, besides the user's options. */
export interface ContainerPlan {
  readonly name: string;
  /** The executor's id. */
  readonly owner: string;
  /** The supervisor's command, for a container that ends with this program. */
  readonly command: readonly string[];
  /** `uid:gid`; `undefined`: the image's. */
  readonly user: string | undefined;
  /** The directory of the daemon's host that is the work directory; `undefined`: an anonymous volume is. */
  readonly bindSource: string | undefined;
}

const hardenedMemoryBytes = 1_073_741_824;
const hardenedPidsLimit = 512;

/** The container, as the API wants it described. */
export function containerOptions(options: DockerExecutorOptions, plan: ContainerPlan): ContainerCreateOptions {
  const leashed = options.stopContainer ?? true;
  const [program = "sh", ...words] = leashed ? plan.command : keeperCommand;
  return {
    name: plan.name,
    Image: options.image ?? defaultImage,
    Entrypoint: [program],
    Cmd: words,
    ...(plan.user === undefined ? {} : { User: plan.user }),
    WorkingDir: workspacePath,
    Labels: { [ownerLabel]: plan.owner },
    // The supervisor's input ends with this program, and with the input the container.
    OpenStdin: true,
    StdinOnce: leashed,
    AttachStdin: leashed,
    AttachStdout: leashed,
    AttachStderr: leashed,
    Tty: false,
    HostConfig: hostConfig(options, plan),
  };
}

/** The image if none is given. */
export const defaultImage = "python:3-slim";

/** Bytes of memory that the container may use; `undefined`: no limit. */
export function memoryLimit({ memoryBytes, hardened = true }: DockerExecutorOptions): number | undefined {
  return memoryBytes ?? (hardened ? hardenedMemoryBytes : undefined);
}

function hostConfig(options: DockerExecutorOptions, { bindSource }: ContainerPlan): HostConfig {
  const hardened = options.hardened ?? true;
  const memory = memoryLimit(options);
  const pids = options.pidsLimit ?? (hardened ? hardenedPidsLimit : undefined);
  return {
    AutoRemove: options.autoRemove ?? true,
    Init: true,
    Mounts: [
      bindSource === undefined
        ? { Type: "volume", Source: "", Target: workspacePath }
        : { Type: "bind", Source: bindSource, Target: workspacePath },
      ...extraMounts(options),
    ],
    // All output goes through the supervisor: a log would be a second copy, without a limit, on the daemon's disk.
    LogConfig: { Type: "none", Config: {} },
    ...(hardened ? { CapDrop: ["ALL"], SecurityOpt: ["no-new-privileges"] } : {}),
    // Swap counts as memory, or the limit would be twice what was asked for.
    ...(memory === undefined ? {} : { Memory: memory, MemorySwap: memory }),
    ...(pids === undefined ? {} : { PidsLimit: pids }),
    ...(options.cpus === undefined ? {} : { NanoCpus: Math.round(options.cpus * 1e9) }),
    ...(options.network === undefined ? {} : { NetworkMode: options.network }),
    ...(options.runtime === undefined ? {} : { Runtime: options.runtime }),
    ...(options.extraHosts === undefined
      ? {}
      : { ExtraHosts: Object.entries(options.extraHosts).map(([host, address]) => `${host}:${address}`) }),
    ...(options.deviceRequests === undefined ? {} : { DeviceRequests: deviceRequests(options.deviceRequests) }),
    ...(options.readOnlyRootFilesystem === true
      ? // Packages with compiled code are installed below /tmp, so it must not be `noexec`.
        { ReadonlyRootfs: true, Tmpfs: { "/tmp": "rw,exec,nosuid,nodev,mode=1777" } }
      : {}),
  };
}

function extraMounts({ extraVolumes = {} }: DockerExecutorOptions): MountSettings[] {
  return Object.entries(extraVolumes).map(([source, { bind, mode }]) => ({
    Type: isPath(source) ? "bind" : "volume",
    Source: source,
    Target: bind,
    ReadOnly: mode === "ro",
  }));
}

/** Whether a volume's source is a directory of the daemon's host, and not a volume's name. */
export function isPath(source: string): boolean {
  return source.startsWith("/") || /^[A-Za-z]:[\\/]/.test(source);
}

function deviceRequests(requests: NonNullable<DockerExecutorOptions["deviceRequests"]>): HostConfig["DeviceRequests"] {
  return requests.map(({ driver, count, deviceIds, capabilities, options }) => ({
    ...(driver === undefined ? {} : { Driver: driver }),
    ...(count === undefined ? {} : { Count: count }),
    ...(deviceIds === undefined ? {} : { DeviceIDs: [...deviceIds] }),
    Capabilities: (capabilities ?? [["gpu"]]).map((each) => [...each]),
    ...(options === undefined ? {} : { Options: { ...options } }),
  }));
}
