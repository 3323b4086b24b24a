import type { AllowedNetwork } from "@fenced/core";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";

/** A container's network, as the options define it. */
export interface ContainerNetwork {
  /** The network mode for the daemon's API; `undefined` for the daemon's default. */
  readonly mode: string | undefined;
  /** The hosts that the container can reach, through a proxy in this process. */
  readonly policy?: AllowedNetwork;
}

/** The network of a container with these options. */
export function containerNetwork({ network = "open", dockerNetwork }: DockerExecutorOptions): ContainerNetwork {
  if (network === "open") return { mode: dockerNetwork };
  return network === "none" ? { mode: "none" } : { mode: "none", policy: network };
}
