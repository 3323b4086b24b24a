import { type AllowedNetwork, packageIndexes } from "@fenced/core";
import {
  isPath,
  kernelFiles,
  limitsConfig,
  memoryLimit,
  ownHostName,
  type ContainerCreateOptions,
  type HostConfig,
  type MountSettings,
  type RuntimeKernel,
} from "@fenced/docker-daemon";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";

/** The work directory's path in the container. */
export function workspacePathOf({ workspacePath = "/workspace" }: DockerExecutorOptions): string {
  return workspacePath;
}

/** The label on all Fenced containers; its value is the id of the executor that created the container. */
export const ownerLabel = "fenced.executor";

/**
 * The command of a container that outlives this program. Its input stays open, so it waits forever without needing any
 * program that an image may lack.
 */
const keeperCommand: readonly string[] = ["sh", "-c", "while read -r line; do :; done"];

/** What defines a container besides the user's options. */
export interface ContainerPlan {
  readonly name: string;
  /** The executor's id. */
  readonly owner: string;
  /** The supervisor's command, for a container that ends with this program. */
  readonly command: readonly string[];
  /** `uid:gid`; `undefined` for the image's user. */
  readonly user: string | undefined;
  /** The directory on the daemon's host to mount as the work directory; `undefined` for an anonymous volume. */
  readonly bindSource: string | undefined;
  /** The command is that of a session's server, which must be the container's first process. */
  readonly isServer: boolean;
  /** Which kernel its runtime gives to code. */
  readonly kernel: RuntimeKernel;
}

/** The container's configuration for the daemon's API. */
export function containerOptions(options: DockerExecutorOptions, plan: ContainerPlan): ContainerCreateOptions {
  const leashed = options.stopContainer ?? true;
  const [program = "sh", ...words] = leashed ? plan.command : keeperCommand;
  const named = containerNetwork(options).mode === "none" ? ownHostName(plan.name) : undefined;
  return {
    name: plan.name,
    Image: options.image ?? defaultImage,
    Entrypoint: [program],
    Cmd: words,
    ...(plan.user === undefined ? {} : { User: plan.user }),
    WorkingDir: workspacePathOf(options),
    ...(named && { Hostname: named.Hostname }),
    Labels: { ...options.labels, [ownerLabel]: plan.owner },
    // When this program ends, so does the supervisor's input, and with it the container.
    OpenStdin: true,
    StdinOnce: leashed,
    AttachStdin: leashed,
    AttachStdout: leashed,
    AttachStderr: leashed,
    Tty: false,
    HostConfig: { ...hostConfig(options, plan), ExtraHosts: [...addresses(options), ...(named?.ExtraHosts ?? [])] },
  };
}

/** The default image. */
export const defaultImage = "python:3-slim";

function hostConfig(options: DockerExecutorOptions, { bindSource, user, isServer, kernel }: ContainerPlan): HostConfig {
  const { mode } = containerNetwork(options);
  const target = workspacePathOf(options);
  return {
    ...limitsConfig(options, kernel),
    ...(isServer && { Init: false }),
    ...kernelFiles(user, options.hardened),
    AutoRemove: options.autoRemove ?? true,
    Mounts: [
      bindSource === undefined
        ? { Type: "volume", Source: "", Target: target }
        : { Type: "bind", Source: bindSource, Target: target },
      ...extraMounts(options),
    ],
    // All output goes through the supervisor; a log would be a second, unlimited copy on the daemon's disk.
    LogConfig: { Type: "none", Config: {} },
    ...(mode === undefined ? {} : { NetworkMode: mode }),
    ...(options.deviceRequests === undefined ? {} : { DeviceRequests: deviceRequests(options.deviceRequests) }),
  };
}

function addresses({ extraHosts = {} }: DockerExecutorOptions): string[] {
  return Object.entries(extraHosts).map(([host, address]) => `${host}:${address}`);
}

function extraMounts({ extraVolumes = {} }: DockerExecutorOptions): MountSettings[] {
  return Object.entries(extraVolumes).map(([source, { bind, mode }]) => ({
    Type: isPath(source) ? "bind" : "volume",
    Source: source,
    Target: bind,
    ReadOnly: mode === "ro",
  }));
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

/** The message for a block whose container ran out of memory. */
export function memorySentence(options: DockerExecutorOptions): string {
  const limit = memoryLimit(options);
  const size = limit === undefined ? "" : ` (limit: ${Math.round(limit / 1_048_576)} MiB)`;
  const files =
    options.readOnlyRootFilesystem === true ? " Files in /tmp count as memory: remove what you do not need." : "";
  return `\nThe block was killed because its container ran out of memory${size}. Process less data at a time.${files}\n`;
}

/** A container's network, as the options define it. */
export interface ContainerNetwork {
  /** The network mode for the daemon's API; `undefined` for the daemon's default. */
  readonly mode: string | undefined;
  /** The hosts that the container can reach, through a proxy in this process. */
  readonly policy?: AllowedNetwork;
  /** The policy is only the default, so a container that cannot enforce it gets no network instead. */
  readonly byDefault?: true;
}

/** The network of a container with these options. */
export function containerNetwork(options: DockerExecutorOptions): ContainerNetwork {
  const { network, dockerNetwork, extraHosts, hardened = true } = options;
  if (network === "none") return { mode: "none" };
  if (typeof network === "object") return { mode: "none", policy: network };
  // `extraHosts` has no effect unless the container has a network.
  const open = network === "open" || dockerNetwork !== undefined || extraHosts !== undefined || !hardened;
  if (open) return { mode: dockerNetwork };
  return { mode: "none", policy: { allow: packageIndexes }, byDefault: true };
}
