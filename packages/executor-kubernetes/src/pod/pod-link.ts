import { PlaceGone } from "@fenced/executor-kit";
import {
  attachCommand,
  paced,
  type SessionAddress,
  SessionLink,
  type SupervisorStreams,
} from "@fenced/executor-kit/supervisor";
import { streamsOf } from "../cluster/exec-socket.ts";
import type { PodClient } from "./pod-client.ts";
import { type Pod, whyOver } from "./pod-state.ts";

/** A session that outlives its program, and how to connect to it. */
export interface KeptSession {
  readonly address: SessionAddress;
  readonly keepAliveMs: number;
  /** End the connection of another program that uses it. */
  readonly takeOver: boolean;
}

/** The way to a session that outlives its program: one exec after another. */
export class PodLink {
  readonly #link: SessionLink;
  readonly #isGone: () => boolean;
  #ended: Promise<boolean> | undefined;

  private constructor(link: SessionLink, isGone: () => boolean) {
    this.#link = link;
    this.#isGone = isGone;
  }

  /**
   * Connects to the session of a pod.
   *
   * @param first - the streams of what has started the session just now. Default: it exists already.
   * @throws PlaceGone if it is over; SessionInUseError if another program uses it; BackendUnavailableError if it does not answer.
   */
  static async open(
    client: PodClient,
    { name, uid }: Pod["metadata"],
    { address, keepAliveMs, takeOver, first }: KeptSession & { readonly first?: SupervisorStreams },
    signal: AbortSignal,
  ): Promise<PodLink> {
    const { key, socket } = address;
    const pace = paced();
    let isGone = false;
    const connect = async (limit: AbortSignal): Promise<SupervisorStreams> => {
      await pace(limit);
      // A node can accept an exec, and then not find the container.
      const why = whyOver(await client.get(name, limit, false), uid);
      isGone = why !== undefined;
      if (why !== undefined) throw new PlaceGone(why);
      return streamsOf(await client.exec(name, attachCommand(socket), limit));
    };
    const options = { key, keepAliveMs, takeOver, signal, connect, ...(first && { first }) };
    return new PodLink(await SessionLink.open(options), () => isGone);
  }

  get streams(): SupervisorStreams {
    return this.#link.streams;
  }

  /** See `SessionLink`. */
  get isCut(): boolean {
    return this.#link.isCut;
  }

  /** Another program uses the session now. */
  get isReplaced(): boolean {
    return this.#link.isReplaced;
  }

  /** Lets go of the session. */
  async detach(): Promise<void> {
    await this.#link.detach();
  }

  /**
   * Ends the session, and returns whether its pod may be deleted. Otherwise, the session is another program's, or could not be
   * reached, and ends by itself unless another program has connected to it. Never rejects.
   */
  end(): Promise<boolean> {
    this.#ended ??= this.#link.end().then((outcome) => outcome === "told" || this.#isGone());
    return this.#ended;
  }

  /** Closes the connection, unless `end` does that. */
  close(): void {
    if (!this.#ended) this.#link.streams.stdin.destroy();
  }
}
