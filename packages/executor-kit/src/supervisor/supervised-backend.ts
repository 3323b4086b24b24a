import { InvalidInputError } from "@fenced/core";
import type { Backend, Opening, PlaceEnd } from "../place.ts";
import type { Connection, Connector } from "./connector.ts";
import { SupervisedPlace } from "./supervised-place.ts";
import type { SessionNetwork } from "./tunnels/session-network.ts";
import type { WarmOptions } from "./warm/interpreter-options.ts";

/** Settings that all places of a session share. */
export interface SupervisedSettings {
  /** The executor's id. */
  readonly id: string;
  /** The executor's environment variables for blocks. */
  readonly env: Readonly<Record<string, string>>;
  /** The functions whose source is copied to the code. */
  readonly functions: readonly unknown[];
  readonly warm: false | WarmOptions | undefined;
  readonly stateful: boolean;
  /** Files of blocks are kept, in the work directory. */
  readonly keepFiles: boolean;
  /** Packages that functions need go into a directory of their own, not into the Python environment. */
  readonly installsApart: boolean;
  /** Wraps the command for a block; nothing is then kept warm. Default: no change. */
  readonly wrap?: ((command: readonly string[]) => readonly string[]) | undefined;
  /** The proxy for programs; `undefined` if there is none. */
  readonly network: SessionNetwork | undefined;
  /** The message for a block whose processes were killed because the place ran out of memory. */
  readonly memorySentence: string;
}

/** A backend whose places have a supervisor: makes places of the connections of its connector. */
export class SupervisedBackend implements Backend<SupervisedPlace> {
  readonly #settings: SupervisedSettings;
  readonly #connector: Connector;

  constructor(settings: SupervisedSettings, connector: Connector) {
    this.#settings = settings;
    this.#connector = connector;
  }

  async open(opening: Opening): Promise<SupervisedPlace> {
    const connection = await this.#connector.connect(opening);
    try {
      return new SupervisedPlace(connection, this.#settings, await this.#enterNetwork(connection));
    } catch (error) {
      await connection.end({ isReplaced: true, isDetached: connection.isLeft === true }).catch(() => {});
      throw error;
    }
  }

  async close(end?: PlaceEnd): Promise<void> {
    try {
      await this.#connector.close(end);
    } finally {
      await this.#settings.network?.close();
    }
  }

  /** @throws InvalidInputError if nothing in the place can carry the connections that the user asked for. */
  async #enterNetwork({ runner, hasNetwork }: Connection): Promise<Readonly<Record<string, string>>> {
    const { network } = this.#settings;
    if (!network || hasNetwork === true) return {};
    const openNetwork = runner.openNetwork?.bind(runner);
    if (openNetwork) return network.enter({ openNetwork });
    throw new InvalidInputError("A network policy needs Python in the container, and this one has none", {
      remedy: 'Use an image that has Python 3.8 or later, or set `network` to "none" or "open".',
    });
  }
}
