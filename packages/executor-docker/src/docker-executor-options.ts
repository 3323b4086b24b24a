import { FunctionWithRequirements, type JsonValue } from "@fenced/core";
import type { BaseExecutorOptions, LanguageCommand } from "@fenced/executor-kit";
import { z } from "zod";
import { dockerConnection, type DockerConnection } from "./daemon/docker-connection.ts";

/** Devices of the host that a container gets, as the Docker API takes them; GPUs, mostly. */
export interface DeviceRequest {
  /** Who provides them, e.g. `"nvidia"`. Default: whoever can. */
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

/** What is known about a download of an image, from time to time. */
export interface PullProgress {
  readonly image: string;
  /** What happens, in the daemon's words: `"Downloading"`, `"Extracting"`, `"Pull complete"`. */
  readonly status: string;
  /** The layer that it happens to; missing if it is about the whole image. */
  readonly layer?: string;
  /** Bytes of the layer that are done, and that there are; missing while the daemon does not say. */
  readonly current?: number;
  readonly total?: number;
}

/** Settings of `DockerCommandLineCodeExecutor`; none is required. */
export interface DockerExecutorOptions extends BaseExecutorOptions {
  /** The image; needs `sh`, and is fastest with `python3`. Default: `python:3-slim`. */
  readonly image?: string;
  /** When to download it. Default: `"missing"`. */
  readonly pull?: "missing" | "always" | "never";
  /** Told about a download while it goes on. Cannot be dumped. */
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
  /** Host names to addresses (or `host-gateway`) that the container knows. Default: none. */
  readonly extraHosts?: Readonly<Record<string, string>>;
  /** Shell commands that run before each block, in the same shell; if the last one fails, the block does. Default: none. */
  readonly initCommand?: string;
  /** The network that the container is in; `"none"`: it has none. Default: the daemon's default bridge. */
  readonly network?: string;
  /** Bytes of memory, swap included, from 6 MiB. Default: 1 GiB if hardened, else no limit. */
  readonly memoryBytes?: number;
  /** Processors, in parts: 1.5. Default: no limit. */
  readonly cpus?: number;
  /** Processes and threads at a time. Default: 512 if hardened, else no limit. */
  readonly pidsLimit?: number;
  /** `user`, `uid` or `uid:gid` in the container. Default: see the README, "Who the code runs as". */
  readonly user?: string;
  /** Let nothing be written but the workspace and `/tmp`, which is then in memory. Default: false. */
  readonly readOnlyRootFilesystem?: boolean;
  /** The OCI runtime, e.g. `"runsc"` (gVisor) or `"kata"`. Default: the daemon's. */
  readonly runtime?: string;
  /**
   * No capabilities, no new privileges, limits for memory and processes, no root where the work directory allows it, no
   * socket of a container daemon. Default: true.
   */
  readonly hardened?: boolean;
  /** Languages to add, or to run by another command: `{ ruby: { extension: "rb", command: ["ruby"] } }`. */
  readonly languages?: Readonly<Record<string, LanguageCommand>>;
  /** Remove the files into which blocks without a file name are written. Default: true. */
  readonly cleanupTempFiles?: boolean;
  /** The daemon, as `DOCKER_HOST` has it (`"unix:///run/docker.sock"`) or with certificates. Default: found by itself. */
  readonly docker?: DockerConnection;
}

const strings = z.record(z.string(), z.string());

/** The shape of the executor's config in a component model. */
export const dockerExecutorConfig: z.ZodType<DockerExecutorOptions> = z.strictObject({
  timeoutMs: z.number().exactOptional(),
  maxOutputBytes: z.number().exactOptional(),
  env: strings.exactOptional(),
  functions: z.array(z.json().transform((json: JsonValue) => FunctionWithRequirements.fromJSON(json))).exactOptional(),
  functionsModule: z.string().exactOptional(),
  image: z.string().exactOptional(),
  pull: z.enum(["missing", "always", "never"]).exactOptional(),
  containerName: z.string().exactOptional(),
  reuse: z.boolean().exactOptional(),
  workDir: z.string().exactOptional(),
  bindDir: z.string().exactOptional(),
  autoRemove: z.boolean().exactOptional(),
  stopContainer: z.boolean().exactOptional(),
  deviceRequests: z
    .array(
      z.strictObject({
        driver: z.string().exactOptional(),
        count: z.int().exactOptional(),
        deviceIds: z.array(z.string()).exactOptional(),
        capabilities: z.array(z.array(z.string())).exactOptional(),
        options: strings.exactOptional(),
      }),
    )
    .exactOptional(),
  extraVolumes: z
    .record(z.string(), z.strictObject({ bind: z.string(), mode: z.enum(["rw", "ro"]).exactOptional() }))
    .exactOptional(),
  extraHosts: strings.exactOptional(),
  initCommand: z.string().exactOptional(),
  network: z.string().exactOptional(),
  memoryBytes: z.number().exactOptional(),
  cpus: z.number().exactOptional(),
  pidsLimit: z.number().exactOptional(),
  user: z.string().exactOptional(),
  readOnlyRootFilesystem: z.boolean().exactOptional(),
  runtime: z.string().exactOptional(),
  hardened: z.boolean().exactOptional(),
  languages: z
    .record(z.string(), z.strictObject({ extension: z.string(), command: z.array(z.string()) }))
    .exactOptional(),
  cleanupTempFiles: z.boolean().exactOptional(),
  docker: dockerConnection.exactOptional(),
});
