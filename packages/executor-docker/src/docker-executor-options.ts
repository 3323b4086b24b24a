import path from "node:path";
import type { NetworkPolicy } from "@fenced/core";
import {
  callbackOption,
  networkPolicyOption,
  optionsSchema,
  stringsOption,
  type OptionSchemas,
} from "@fenced/core/options";
import {
  containerLimits,
  dockerConnection,
  type ContainerLimits,
  type DockerConnection,
  type PullProgress,
} from "@fenced/docker-daemon";
import {
  baseExecutorConfig,
  commandLineExecutorConfig,
  type BaseExecutorOptions,
  type CommandLineExecutorOptions,
} from "@fenced/executor-kit";
import { z } from "zod";

/** Devices of the host that a container gets, as the Docker API takes them; GPUs, mostly. */
export interface DeviceRequest {
  /** The driver that provides them, e.g. `"nvidia"`. Default: any that can. */
  readonly driver?: string;
  /** How many; -1: all. Do not give `deviceIds` then. */
  readonly count?: number;
  /** Which ones. */
  readonly deviceIds?: readonly string[];
  /** What they must be able to: any of the lists, all in it: `[["gpu", "compute"]]`. */
  readonly capabilities?: readonly (readonly string[])[];
  /** Settings of the driver. */
  readonly options?: Readonly<Record<string, string>>;
}

/** A volume or a directory of the daemon's host, in the container. */
export interface VolumeMount {
  /** Absolute path in the container. */
  readonly bind: string;
  /** Default: `"rw"`. */
  readonly mode?: "rw" | "ro";
}

/** Settings of the interpreter that waits; none is required. */
export interface WarmOptions {
  /** Modules to import in it: `["numpy", "pandas"]`. One that cannot be imported is left to the blocks. Default: none. */
  readonly preload?: readonly string[];
}

/** Settings of `DockerCommandLineCodeExecutor`; none is required. */
export interface DockerExecutorOptions extends BaseExecutorOptions, CommandLineExecutorOptions, ContainerLimits {
  /** The image; needs `sh`, and is fastest with `python3`. Default: `python:3-slim`. */
  readonly image?: string;
  /** When to download it. Default: `"missing"`. */
  readonly pull?: "missing" | "always" | "never";
  /** Called with the progress of a download. Cannot be dumped. */
  readonly onPullProgress?: (progress: PullProgress) => void;
  /** The container's name. Default: `fenced-` and a unique id. */
  readonly containerName?: string;
  /** Use the container of this name if there is one, started or not. Default: false; a name that is taken is an error. */
  readonly reuse?: boolean;
  /**
   * The blocks' working directory, at `/workspace` in the container; made if missing, never deleted. Default: a
   * temporary one, deleted by `stop()`.
   */
  readonly workDir?: string;
  /**
   * What the daemon's host calls `workDir`, if this program runs in a container itself and talks to the daemon of its
   * host. Default: the same path, if that is the same directory.
   */
  readonly bindDir?: string;
  /** Remove the container when it ends. False: it stays, ended, to be looked at. Default: true. */
  readonly autoRemove?: boolean;
  /** End the container in `stop()`, and with this program. False: it runs on. Default: true. */
  readonly stopContainer?: boolean;
  /** Devices of the host, such as GPUs. Default: none. */
  readonly deviceRequests?: readonly DeviceRequest[];
  /** Directories (absolute paths of the daemon's host) or named volumes to mount. Default: none. */
  readonly extraVolumes?: Readonly<Record<string, VolumeMount>>;
  /** Labels of the container, to find it by: `docker ps --filter label=tenant=42`. Default: Fenced's own. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Host names to addresses (or `host-gateway`) that the container knows. Default: none. */
  readonly extraHosts?: Readonly<Record<string, string>>;
  /** Shell commands that run before each block, in the same shell; if the last one fails, the block does. Default: none. */
  readonly initCommand?: string;
  /**
   * What the code may talk to. `"none"`: nothing but the container's own loopback; `"open"`: whatever the container's network
   * reaches; `{ allow: ["pypi.org:443"] }`: these hosts alone, through a proxy in this process; the container has no network then,
   * and its image needs Python. Default: `"open"`.
   */
  readonly network?: NetworkPolicy;
  /** The daemon's network that the container is in, by its name; for `network: "open"`. Default: the daemon's default bridge. */
  readonly dockerNetwork?: string;
  /**
   * Keep a Python interpreter waiting, with modules that it has imported already, and fork Python blocks from it. This saves the
   * import of large modules, such as pandas. See the README, "Warm Python". Default: false.
   */
  readonly warm?: false | WarmOptions;
  /** `user`, `uid` or `uid:gid` in the container. Default: see the README, "Who the code runs as". */
  readonly user?: string;
  /**
   * No capabilities, no new privileges, limits for memory and processes, no root where the work directory allows it, no
   * socket of a container daemon. Default: true.
   */
  readonly hardened?: boolean;
  /** The daemon, as `DOCKER_HOST` has it (`"unix:///run/docker.sock"`) or with certificates. Default: found by itself. */
  readonly docker?: DockerConnection;
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

const warmOptions: z.ZodType<WarmOptions> = optionsSchema({
  preload: z
    .array(
      z.string().regex(/^[\p{L}_][\p{L}\p{N}_]*(\.[\p{L}_][\p{L}\p{N}_]*)*$/u, "must be the name of a Python module"),
    )
    .exactOptional(),
} satisfies OptionSchemas<WarmOptions>);

const text = z.string().min(1);

/** Checks the options, and the executor's config in a component model. */
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
  network: networkPolicyOption("; a network of the daemon goes into `dockerNetwork`").exactOptional(),
  dockerNetwork: text.exactOptional(),
  warm: z.union([z.literal(false), warmOptions]).exactOptional(),
  user: text.exactOptional(),
  docker: dockerConnection.exactOptional(),
} satisfies OptionSchemas<DockerExecutorOptions>).check(({ value, issues }) => {
  const { reuse, containerName, bindDir, workDir, hardened, network, dockerNetwork, extraVolumes = {} } = value;
  const refuse = (names: string[], input: unknown, message: string) =>
    issues.push({ code: "custom", path: names, input, message });
  if (reuse === true && containerName === undefined) {
    refuse(["reuse"], reuse, "needs `containerName`: name the container");
  }
  if (bindDir !== undefined && workDir === undefined) {
    refuse(["bindDir"], bindDir, "needs `workDir`: name the directory here");
  }
  if (dockerNetwork === "none") {
    refuse(["dockerNetwork"], dockerNetwork, 'must be the name of a network; for none, set `network: "none"`');
  } else if (dockerNetwork !== undefined && network !== undefined && network !== "open") {
    const why = "with another policy the container is in none";
    refuse(["dockerNetwork"], dockerNetwork, `needs \`network: "open"\`: ${why}`);
  }
  for (const source of hardened === false ? [] : Object.keys(extraVolumes)) {
    if (!isPath(source) || !daemonSockets.has(path.posix.basename(source))) continue;
    refuse(
      ["extraVolumes", source],
      source,
      "must not be the socket of a container daemon, which makes the code root on the host: leave it out, or set `hardened: false`",
    );
  }
});

const daemonSockets: ReadonlySet<string> = new Set(["docker.sock", "podman.sock", "containerd.sock", "crio.sock"]);

/** Whether a volume's source is a directory of the daemon's host, and not a volume's name. */
export function isPath(source: string): boolean {
  return source.startsWith("/") || /^[A-Za-z]:[\\/]/.test(source);
}
