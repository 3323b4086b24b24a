import { rootCertificates } from "node:tls";
import { type AllowedNetwork, InvalidInputError, type NetworkDecision } from "@fenced/core";
import { EgressProxy } from "@fenced/egress";
import { NetworkLog, networkVariables } from "@fenced/executor-kit";
import type { BlockRunner } from "../run/exec-runner.ts";

/**
 * Maximum number of simultaneous connections of one container; below what its supervisor carries, so that one too many
 * gets a reason.
 */
const maxConnections = 200;

/** The proxy of a session, in this process, and its connection to the session's containers, which have no network. */
export class SessionNetwork {
  readonly #proxy: EgressProxy;
  readonly #hasCredentials: boolean;
  readonly #log = new NetworkLog();

  constructor(policy: AllowedNetwork) {
    const { onRequest, credentials = [] } = policy;
    this.#hasCredentials = credentials.length > 0;
    this.#proxy = new EgressProxy({
      ...policy,
      maxConnections,
      onRequest: (decision) => {
        this.#log.add(decision);
        onRequest?.(decision);
      },
    });
  }

  /**
   * Gives the programs of a container access to the proxy.
   *
   * @returns the variables that tell them where it is.
   * @throws InvalidInputError if nothing in the container can carry their connections.
   */
  async enter(runner: BlockRunner): Promise<Readonly<Record<string, string>>> {
    if (!runner.openNetwork) {
      throw new InvalidInputError(
        "This container has no Python, through which its programs could reach the hosts in `network.allow`",
        { remedy: 'Use an image that has Python 3.8 or later, or set `network` to "none" or "open".' },
      );
    }
    const entrance = await runner.openNetwork(
      (connection) => this.#proxy.handle(connection),
      await this.#authorities(),
    );
    return networkVariables(entrance);
  }

  /** Starts to collect refused requests; returns a function that returns them. */
  collect(): () => readonly NetworkDecision[] {
    return this.#log.collect();
  }

  close(): Promise<void> {
    return this.#proxy.close();
  }

  /**
   * The proxy's own certificate authority, for hosts with credentials, and the public ones, which an image may lack.
   */
  async #authorities(): Promise<string | undefined> {
    if (!this.#hasCredentials) return undefined;
    return [await this.#proxy.certificate(), ...rootCertificates].join("\n");
  }
}
