import type { NetworkPolicy } from "@fenced/core";
import {
  callbackOption,
  networkPolicyOption,
  optionsSchema,
  stringsOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import {
  containerLimits,
  daemonSocketRefusal,
  dockerConnection,
  holdsDaemonSocket,
  isPath,
  type ContainerLimits,
  type DockerConnection,
  type PullProgress,
} from "@fenced/docker-daemon";
import {
  baseExecutorConfig,
  commandLineExecutorConfig,
  type BaseExecutorOptions,
  type CommandLineExecutorOptions,
  type KeepAliveOptions,
  keepAliveOptions,
} from "@fenced/executor-kit";
import {
  checkStateful,
  type StatefulExecutorOptions,
  statefulOptions,
  warmOption,
  type WarmOptions,
} from "@fenced/executor-kit/supervisor";
import { z } from "zod";

/** Host devices for a container, mostly GPUs, in the terms of the Docker API. */
export interface DeviceRequest {
  /** The driver that provides the devices, e.g. `"nvidia"`. Default: any suitable one. */
  readonly driver?: string;
  /** Number of devices; -1 for all. Do not combine with `deviceIds`. */
  readonly count?: number;
  /** Ids of the devices. */
  readonly deviceIds?: readonly string[];
  /** Required capabilities: a device must have all those of at least one list. `[["gpu", "compute"]]`. */
  readonly capabilities?: readonly (readonly string[])[];
  /** Driver options. */
  readonly options?: Readonly<Record<string, string>>;
}

/** Where to mount a volume or a directory of the daemon's host in the container. */
export interface VolumeMount {
  /** Absolute path in the container. */
  readonly bind: string;
  /** Default: `"rw"`. */
  readonly mode?: "rw" | "ro";
}

/** Options of `DockerCommandLineCodeExecutor`; all are optional. */
export interface DockerExecutorOptions
  extends BaseExecutorOptions, CommandLineExecutorOptions, StatefulExecutorOptions, KeepAliveOptions, ContainerLimits {
  /**
   * The image; it needs `sh`, and should have `python3`: see "Images without Python" in the README. Default:
   * `python:3-slim`.
   */
  readonly image?: string | undefined;
  /** When to pull the image. Default: `"missing"`. */
  readonly pull?: "missing" | "always" | "never" | undefined;
  /** Called with the progress of a pull. Cannot be dumped. */
  readonly onPullProgress?: ((progress: PullProgress) => void) | undefined;
  /** The container's name. Default: `fenced-` and a unique id. */
  readonly containerName?: string | undefined;
  /**
   * Reuse an existing container named `containerName`, running or not. Default: false, so that a name in use is an
   * error.
   */
  readonly reuse?: boolean | undefined;
  /**
   * The blocks' working directory, at `/workspace` in the container; created if missing, never deleted. Default: a
   * temporary one that `stop()` deletes.
   */
  readonly workDir?: string | undefined;
  /**
   * The path of `workDir` on the daemon's host, for a program that itself runs in a container and uses its host's
   * daemon. Only with `workDir`. Default: the same path, if that is the same directory.
   */
  readonly bindDir?: string | undefined;
  /**
   * The path of the workspace in the container: absolute, and not `/`. A home directory such as `/home/user` gives
   * programs one that they can write to. Default: `/workspace`.
   */
  readonly workspacePath?: string | undefined;
  /** Remove the container when it ends. If false, the stopped container remains for inspection. Default: true. */
  readonly autoRemove?: boolean | undefined;
  /** End the container in `stop()` and when this program ends. If false, it keeps running. Default: true. */
  readonly stopContainer?: boolean | undefined;
  /** Host devices, such as GPUs. Default: none. */
  readonly deviceRequests?: readonly DeviceRequest[] | undefined;
  /**
   * Named volumes, or directories given by their absolute path on the daemon's host, to mount. Hardened containers refuse
   * a container daemon's socket, whatever path or volume leads to it, and directories in which programs listen on
   * sockets; code can connect to sockets that appear later. Default: none.
   */
  readonly extraVolumes?: Readonly<Record<string, VolumeMount>> | undefined;
  /** Labels to find the container by: `docker ps --filter label=tenant=42`. Default: only Fenced's own. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /**
   * Entries for the container's hosts file: names mapped to addresses or to `host-gateway`; implies `network: "open"`.
   * Default: none.
   */
  readonly extraHosts?: Readonly<Record<string, string>> | undefined;
  /**
   * Shell commands to run before each block, in the same shell; if the last one fails, so does the block. Default:
   * none.
   */
  readonly initCommand?: string | undefined;
  /**
   * What the code may connect to. `"none"`: only the container's own loopback; `"open"`: everything the container's
   * network reaches; `{ allow: ["pypi.org:443"] }`: only these hosts, through a proxy in this process; the container
   * then has no network, and its image needs Python. Default: `{ allow: packageIndexes }` if the container is hardened,
   * and `"none"` if its image has no Python; `"open"` if it is not hardened, or `dockerNetwork` or `extraHosts` are set.
   * A container that is reused keeps the network that it has.
   */
  readonly network?: NetworkPolicy | undefined;
  /**
   * The name of the daemon's network to attach the container to; implies `network: "open"`. Default: the daemon's
   * default bridge.
   */
  readonly dockerNetwork?: string | undefined;
  /**
   * Ports of programs in the container that this host can reach, whatever `network` is: `executor.processes.ports` maps
   * each one to a port of 127.0.0.1. The image needs Python. Default: none.
   */
  readonly dockerPorts?: readonly number[] | undefined;
  /**
   * Keep a Python interpreter waiting, with modules already imported, and fork Python blocks from it. Also keep a
   * JavaScript interpreter waiting, if Node is installed, which becomes the next block. This saves the time to start
   * them and to import large modules such as pandas. See "Warm Python" in the README. Default: false.
   */
  readonly warm?: false | WarmOptions | undefined;
  /** `user`, `uid` or `uid:gid` in the container. Default: see "Who the code runs as" in the README. */
  readonly user?: string | undefined;
  /**
   * Drop all capabilities, forbid new privileges, limit memory and processes, avoid root where the work directory
   * allows it, and refuse to mount a container daemon's socket. Default: true.
   */
  readonly hardened?: boolean | undefined;
  /**
   * The daemon's address, as in `DOCKER_HOST` (`"unix:///run/docker.sock"`), or an address with certificates. Default:
   * detected automatically.
   */
  readonly docker?: DockerConnection | undefined;
}

const deviceRequest: z.ZodType<DeviceRequest> = optionsSchema({
  driver: z.string().exactOptional(),
  count: z.int().exactOptional(),
  deviceIds: z.array(z.string()).exactOptional(),
  capabilities: z.array(z.array(z.string())).exactOptional(),
  options: stringsOption.exactOptional(),
} satisfies OptionSchemas<DeviceRequest>);

const volumeMount: z.ZodType<VolumeMount> = optionsSchema({
  bind: z.string().startsWith("/", "must be an absolute path"),
  mode: z.enum(["rw", "ro"]).exactOptional(),
} satisfies OptionSchemas<VolumeMount>);

const text = z.string().min(1);

/** Validates the options, and the executor's config in a component model. */
export const dockerExecutorOptions: z.ZodType<DockerExecutorOptions> = optionsSchema({
  ...baseExecutorConfig,
  ...commandLineExecutorConfig,
  ...containerLimits,
  image: text.exactOptional(),
  pull: z.enum(["missing", "always", "never"]).exactOptional(),
  onPullProgress: callbackOption<(progress: PullProgress) => void>().exactOptional(),
  containerName: z
    .string()
    .regex(/^[\w][\w.-]+$/, "must be two or more letters, digits, `_`, `.` and `-`, and not start with `.` or `-`")
    .exactOptional(),
  reuse: z.boolean().exactOptional(),
  workDir: text.exactOptional(),
  bindDir: text.exactOptional(),
  workspacePath: z
    .string()
    .regex(
      /^(?:\/(?!\.{1,2}(?:\/|$))[^/\0:,]+)+$/,
      "must be an absolute path, without `.`, `..`, colons and commas: /home/user",
    )
    .exactOptional(),
  autoRemove: z.boolean().exactOptional(),
  stopContainer: z.boolean().exactOptional(),
  deviceRequests: z.array(deviceRequest).exactOptional(),
  extraVolumes: z.record(z.string(), volumeMount).exactOptional(),
  labels: stringsOption.exactOptional(),
  extraHosts: stringsOption.exactOptional(),
  initCommand: z
    .string()
    .regex(/^[^\0]*$/, "must not contain a NUL character")
    .exactOptional(),
  network: networkPolicyOption("; for a network of the daemon, use `dockerNetwork`").exactOptional(),
  dockerNetwork: text.exactOptional(),
  dockerPorts: z.array(wholeNumberOption({ from: 1, to: 65_535 })).exactOptional(),
  warm: warmOption.exactOptional(),
  ...keepAliveOptions,
  ...statefulOptions,
  user: text.exactOptional(),
  docker: dockerConnection.exactOptional(),
} satisfies OptionSchemas<DockerExecutorOptions>).check(checkStateful, ({ value, issues }) => {
  const { reuse, containerName, bindDir, workDir, hardened, network, dockerNetwork, extraVolumes = {} } = value;
  const refuse = (names: string[], input: unknown, message: string) =>
    issues.push({ code: "custom", path: names, input, message });
  if (reuse === true && containerName === undefined) {
    refuse(["reuse"], reuse, "needs `containerName`, the name of the container to reuse");
  }
  if (bindDir !== undefined && workDir === undefined) {
    refuse(["bindDir"], bindDir, "needs `workDir`, the path of the same directory on this machine");
  }
  const { keepAliveMs = 0, stopContainer } = value;
  if (keepAliveMs > 0 && (reuse === true || stopContainer === false)) {
    const other = reuse === true ? "`reuse`" : "`stopContainer: false`";
    refuse(["keepAliveMs"], keepAliveMs, `cannot be combined with ${other}: such a container does not end by itself`);
  }
  if (dockerNetwork === "none") {
    refuse(["dockerNetwork"], dockerNetwork, 'must be the name of a network; for none, set `network: "none"`');
  } else if (dockerNetwork !== undefined && network !== undefined && network !== "open") {
    const why = "with any other policy, the container has no network";
    refuse(["dockerNetwork"], dockerNetwork, `needs \`network: "open"\`: ${why}`);
  }
  for (const source of hardened === false ? [] : Object.keys(extraVolumes)) {
    if (!isPath(source) || !holdsDaemonSocket(source)) continue;
    refuse(["extraVolumes", source], source, `${daemonSocketRefusal}: leave it out, or set \`hardened: false\``);
  }
});
