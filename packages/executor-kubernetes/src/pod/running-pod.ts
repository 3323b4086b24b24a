import { BackendUnavailableError } from "@fenced/core";
import { Heartbeat } from "@fenced/executor-kit";
import {
  connectSupervisor,
  Loss,
  pythonOf,
  type Supervisor,
  type SupervisorInventory,
} from "@fenced/executor-kit/supervisor";
import type { WebSocket } from "ws";
import { streamsOf, type ExecStreams } from "../cluster/exec-socket.ts";
import { closePodNetwork } from "../network/pod-network.ts";
import type { PodClient } from "./pod-client.ts";
import type { PodSource } from "./pod-source.ts";
import { type Pod, whyEnded } from "./pod-state.ts";

/** Milliseconds to wait for the API to report why a pod ended: it learns that from the node, a little later. */
const explainMs = 6000;
/** Milliseconds for the deletion of a pod: a server that does not answer must not hold up `stop()`. */
const endMs = 15_000;

/** A monitored pod whose supervisor responds. */
export class RunningPod {
  /** As the API reported it when the pod began to run. */
  readonly metadata: Pod["metadata"];
  readonly inventory: SupervisorInventory;
  readonly supervisor: Supervisor;
  readonly #client: PodClient;
  readonly #remove: PodSource["remove"];
  readonly #streams: ExecStreams;
  readonly #heartbeat: Heartbeat;
  readonly #loss: Loss;
  #hasPolicy = false;

  private constructor(
    client: PodClient,
    { metadata, remove }: { readonly metadata: Pod["metadata"]; readonly remove: PodSource["remove"] },
    streams: ExecStreams,
    { inventory, supervisor }: { readonly inventory: SupervisorInventory; readonly supervisor: Supervisor },
  ) {
    this.#client = client;
    this.metadata = metadata;
    this.#remove = remove;
    this.#streams = streams;
    this.inventory = inventory;
    this.supervisor = supervisor;
    this.#heartbeat = new Heartbeat({
      name: "it",
      // The loss of the supervisor is reported elsewhere.
      ping: () => supervisor.ping().catch(() => {}),
      tickMs: 5000,
      patience: 4,
      onLost: (error) => void this.#loss.report(error),
    });
    this.#loss = new Loss(
      (hint) => this.#explain(hint),
      (error) => {
        supervisor.fail(error);
        this.#letGo();
      },
    );
  }

  /**
   * Connects to the supervisor that was started in a pod.
   *
   * @param pod - `socket` leads to it, and `program` is what it waits for.
   * @throws BackendUnavailableError if it does not answer, with the reason; the signal's reason.
   */
  static async open(
    client: PodClient,
    pod: {
      readonly metadata: Pod["metadata"];
      readonly socket: WebSocket;
      readonly program: Uint8Array;
      readonly remove: PodSource["remove"];
    },
    signal: AbortSignal,
  ): Promise<RunningPod> {
    const { name } = pod.metadata;
    const streams = streamsOf(pod.socket);
    let opened: RunningPod | undefined;
    let early: Error | undefined;
    const onLost = (error: Error): void => {
      early = error;
      if (opened) void opened.#loss.report(error);
    };
    try {
      streams.stdin.write(pod.program);
      const { inventory, supervisor } = await connectSupervisor(streams, { signal, onLost });
      if (!supervisor) throw new Error("something other than the supervisor answered");
      opened = new RunningPod(client, pod, streams, { inventory, supervisor });
      if (early) void opened.#loss.report(early);
      return opened;
    } catch (cause) {
      streams.stdin.destroy();
      signal.throwIfAborted();
      const said = cause instanceof Error ? cause.message : String(cause);
      const why = (await explain(client, name)) ?? said;
      throw new BackendUnavailableError(`The pod ${name} cannot run code: ${why}`, {
        remedy: "The image needs `sh` and Python 3.8 or later. If it has both, call again to create a new pod.",
        cause,
      });
    }
  }

  get name(): string {
    return this.metadata.name;
  }

  /** Resolves once blocks can no longer run in it, unless it was ended on purpose: to an error that says why. */
  get lost(): Promise<Error> {
    return this.#loss.lost;
  }

  /** True once something shows that it is lost, even if it is not known yet why. */
  get isLosing(): boolean {
    return this.#loss.isReported;
  }

  /**
   * Cuts it off from every network; call this before code runs in it.
   *
   * @throws like `closePodNetwork`.
   */
  async closeNetwork(signal: AbortSignal): Promise<void> {
    // The policy is deleted with the pod's object, which therefore must outlive the pod's last process.
    this.#hasPolicy = true;
    await closePodNetwork(
      { client: this.#client, metadata: this.metadata, supervisor: this.supervisor, python: pythonOf(this.inventory) },
      signal,
    );
  }

  /** Ends the pod. Does nothing if it is gone. */
  async end(): Promise<void> {
    this.#loss.cancel();
    this.#letGo();
    try {
      await this.#remove({ signal: AbortSignal.timeout(endMs), gently: this.#hasPolicy });
    } catch (cause) {
      throw new BackendUnavailableError(
        `The pod ${this.name} could not be deleted: ${cause instanceof Error ? cause.message : String(cause)}`,
        {
          remedy: `It ends on its own within a minute; make sure that it is gone: kubectl delete pod --namespace ${this.#client.namespace} ${this.name}`,
          cause,
        },
      );
    }
  }

  async #explain(hint: Error): Promise<Error> {
    const why = (await explain(this.#client, this.name)) ?? hint.message;
    return new BackendUnavailableError(`The pod ${this.name} is lost: ${why}`, {
      remedy: "Call again to use a new pod. If it happens again: kubectl get events",
    });
  }

  #letGo(): void {
    this.#heartbeat.stop();
    this.#streams.stdin.destroy();
  }
}

/** Why a pod ended, according to the API; `undefined` if it does not answer or sees nothing wrong. Never rejects. */
async function explain(client: PodClient, name: string): Promise<string | undefined> {
  const signal = AbortSignal.timeout(explainMs);
  try {
    // Get the pod first: a watch reports nothing about a pod that is gone.
    const first = whyEnded(await client.get(name, signal, false));
    if (first !== undefined) return first;
    for await (const pod of client.follow(name, signal)) {
      const why = whyEnded(pod);
      if (why !== undefined) return why;
    }
  } catch {
    // The server does not answer, or has not reported anything in time.
  }
  return undefined;
}
