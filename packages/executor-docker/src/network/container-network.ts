import { type AllowedNetwork, InvalidInputError, packageIndexes } from "@fenced/core";
import type { SessionNetwork, Supervisor } from "@fenced/executor-kit/supervisor";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";

/** A container's network, as the options define it. */
export interface ContainerNetwork {
  /** The network mode for the daemon's API; `undefined` for the daemon's default. */
  readonly mode: string | undefined;
  /** The hosts that the container can reach, through a proxy in this process. */
  readonly policy?: AllowedNetwork;
  /** The user did not ask for the policy: a container that cannot carry it has no network instead. */
  readonly byDefault?: true;
}

/** The network of a container with these options. */
export function containerNetwork(options: DockerExecutorOptions): ContainerNetwork {
  const { network, dockerNetwork, extraHosts, hardened = true } = options;
  if (network === "none") return { mode: "none" };
  if (typeof network === "object") return { mode: "none", policy: network };
  // `extraHosts` means nothing without a network of the container's own.
  const open = network === "open" || dockerNetwork !== undefined || extraHosts !== undefined || !hardened;
  if (open) return { mode: dockerNetwork };
  return { mode: "none", policy: { allow: packageIndexes }, byDefault: true };
}

/**
 * Gives the programs of a container access to the session's proxy.
 *
 * @returns the variables that tell them where it is.
 * @throws InvalidInputError if nothing in the container can carry the connections that the user asked for.
 */
export async function enterNetwork(
  network: SessionNetwork,
  runner: Partial<Pick<Supervisor, "openNetwork">>,
  options: DockerExecutorOptions,
): Promise<Readonly<Record<string, string>>> {
  const openNetwork = runner.openNetwork?.bind(runner);
  if (openNetwork) return network.enter({ openNetwork });
  if (containerNetwork(options).byDefault) return {};
  throw new InvalidInputError("A network policy needs Python in the container, and this one has none", {
    remedy: 'Use an image that has Python 3.8 or later, or set `network` to "none" or "open".',
  });
}
