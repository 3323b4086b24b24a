import type { NetworkPolicy } from "@fenced/core";
import {
  callbackOption,
  networkPolicyOption,
  optionsSchema,
  signalOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import { baseExecutorConfig, type BaseExecutorOptions } from "@fenced/executor-kit";
import { z } from "zod";

/** What Docker or Podman reports about the download of an image, from time to time. */
export interface DownloadProgress {
  /** The image's name. */
  readonly image: string;
  /** The current step, in the daemon's words: `"Downloading"`, `"Extracting"`, `"Pull complete"`. */
  readonly status: string;
  /** The layer; missing if the report is about the whole image. */
  readonly layer?: string;
  /** Finished bytes of the layer; missing while the daemon does not report them. */
  readonly current?: number;
  /** Size of the layer in bytes; missing while the daemon does not report it. */
  readonly total?: number;
}

/**
 * Options of `openExecutor`; all are optional. `"auto"` passes over a fence that does not support them. Options for
 * containers are rejected if you name another fence.
 */
export interface OpenExecutorOptions extends BaseExecutorOptions {
  /**
   * The code's network. `"none"`: none. `"open"`: everything that this machine can reach; `{ allow: ["pypi.org:443"]
   * }`: only these hosts, through a proxy in this process. WebAssembly has no network, and is passed over unless this
   * is `"none"`. Default: `"none"`, behind every fence.
   */
  readonly network?: NetworkPolicy | undefined;
  /** Memory limit for the code in bytes, at least 64 MiB. Default: the executor's own, 512 MiB or 1 GiB. */
  readonly memoryBytes?: number | undefined;
  /**
   * The blocks' working directory; created if missing, never deleted. WebAssembly keeps files in memory, and is passed
   * over if you set this. Default: a temporary one.
   */
  readonly workDir?: string | undefined;
  /** Languages that the code is written in; a fence that lacks one of them is passed over. Default: none is required. */
  readonly requiredLanguages?: readonly string[] | undefined;
  /**
   * The image for Docker and Podman; needs `sh`, and is fastest with `python3`. Default: the Docker executor's,
   * `python:3-slim`.
   */
  readonly image?: string | undefined;
  /** The Docker or Podman daemon, as in `DOCKER_HOST`: `"unix:///run/docker.sock"`. Default: found automatically. */
  readonly docker?: string | undefined;
  /** Whether a missing image is downloaded; with `"never"`, Docker is then passed over. Default: `"missing"`. */
  readonly pull?: "missing" | "never" | undefined;
  /** Called with the progress of a download. */
  readonly onPullProgress?: ((progress: DownloadProgress) => void) | undefined;
  /**
   * Milliseconds that a fence may take to start, counted from the last progress of a download if there is one. After
   * that, it is passed over. Default: 30,000; for WebAssembly, which loads Python when it starts for the first time, 200,000.
   */
  readonly startTimeoutMs?: number | undefined;
  /** Milliseconds that the download of an image may take. After that, Docker is passed over. Default: 300,000. */
  readonly pullTimeoutMs?: number | undefined;
  /** Aborts opening; anything started so far is ended first. */
  readonly signal?: AbortSignal | undefined;
}

const leastMemory = 67_108_864;
/** The longest delay of a timer, in milliseconds. */
const longestWait = 2 ** 31 - 1;

/** Checks the options. */
export const openExecutorOptions: z.ZodType<OpenExecutorOptions> = optionsSchema({
  ...baseExecutorConfig,
  network: networkPolicyOption().exactOptional(),
  memoryBytes: wholeNumberOption({ from: leastMemory, unit: "bytes" }).exactOptional(),
  workDir: z.string().min(1).exactOptional(),
  requiredLanguages: z.array(z.string().min(1)).exactOptional(),
  image: z.string().min(1).exactOptional(),
  docker: z.string().min(1).exactOptional(),
  pull: z.enum(["missing", "never"]).exactOptional(),
  onPullProgress: callbackOption<(progress: DownloadProgress) => void>().exactOptional(),
  startTimeoutMs: wholeNumberOption({ from: 1, to: longestWait, unit: "milliseconds" }).exactOptional(),
  pullTimeoutMs: wholeNumberOption({ from: 1, to: longestWait, unit: "milliseconds" }).exactOptional(),
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<OpenExecutorOptions>);
