import type { AllowedNetwork } from "@fenced/core";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";

/** What the options say about a container's network. */
export interface ContainerNetwork {
  /** As the daemon's API takes it; `undefined`: the daemon's default. */
  readonly mode: string | undefined;
  /** The container reaches these hosts alone, through a proxy in this process. */
  readonly policy?: AllowedNetwork;
}

/** The network that a container of these options has. */
export function containerNetwork({ network = "open", dockerNetwork }: DockerExecutorOptions): ContainerNetwork {
  if (network === "open") return { mode: dockerNetwork };
  return network === "none" ? { mode: "none" } : { mode: "none", policy: network };
}
