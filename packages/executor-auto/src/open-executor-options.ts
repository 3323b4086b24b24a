import {
  callbackOption,
  optionsSchema,
  signalOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import { baseExecutorConfig, type BaseExecutorOptions } from "@fenced/executor-kit";
import { z } from "zod";

/** What Docker or Podman reports about the download of an image, from time to time. */
export interface DownloadProgress {
  readonly image: string;
  /** What happens, in the daemon's words: `"Downloading"`, `"Extracting"`, `"Pull complete"`. */
  readonly status: string;
  /** The layer that it happens to; missing if it is about the whole image. */
  readonly layer?: string;
  /** Bytes of the layer that are done, and that there are; missing while the daemon does not say. */
  readonly current?: number;
  readonly total?: number;
}

/**
 * Settings of `openExecutor`; none is required. What a fence cannot do makes `"auto"` pass it over. Those for containers are refused if
 * another fence is named.
 */
export interface OpenExecutorOptions extends BaseExecutorOptions {
  /**
   * The network of the code. `"none"`: none. `"open"`: what this machine reaches; WebAssembly has no network and is passed over
   * then. Default: `"none"`, behind every fence.
   */
  readonly network?: "none" | "open";
  /** Bytes of memory that the code may take, from 64 MiB. Default: the executor's own, 512 MiB or 1 GiB. */
  readonly memoryBytes?: number;
  /**
   * The blocks' working directory; made if missing, never deleted. WebAssembly keeps files in memory and is passed over then. Default:
   * a temporary one.
   */
  readonly workDir?: string;
  /** Languages that the code is written in: a fence without one of them is passed over. Default: none is required. */
  readonly requiredLanguages?: readonly string[];
  /** The image for Docker and Podman; needs `sh`, and is fastest with `python3`. Default: that of the Docker executor, `python:3-slim`. */
  readonly image?: string;
  /** The daemon of Docker or Podman, as `DOCKER_HOST` has it: `"unix:///run/docker.sock"`. Default: found by itself. */
  readonly docker?: string;
  /** Whether an image that is missing is downloaded; `"never"`: Docker is passed over then. Default: `"missing"`. */
  readonly pull?: "missing" | "never";
  /** Called with the progress of a download. */
  readonly onPullProgress?: (progress: DownloadProgress) => void;
  /**
   * Milliseconds that a fence may take to start, from its last sign of a download if there is one. Then it is passed over.
   * Default: 30,000.
   */
  readonly startTimeoutMs?: number;
  /** Milliseconds that the download of an image may take. Then Docker is passed over. Default: 300,000. */
  readonly pullTimeoutMs?: number;
  /** Gives up. What was started until then is ended first. */
  readonly signal?: AbortSignal;
}

const leastMemory = 67_108_864;
/** What a timer takes. */
const longestWait = 2 ** 31 - 1;

/** Checks the options. */
export const openExecutorOptions: z.ZodType<OpenExecutorOptions> = optionsSchema({
  ...baseExecutorConfig,
  network: z.enum(["none", "open"]).exactOptional(),
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
