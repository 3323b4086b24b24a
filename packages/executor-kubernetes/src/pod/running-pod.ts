import { BackendUnavailableError, ExecutorStoppedError } from "@fenced/core";
import { Heartbeat } from "@fenced/executor-kit";
import {
  connectSupervisor,
  Loss,
  pythonOf,
  type Supervisor,
  type SupervisorInventory,
  type SupervisorStreams,
} from "@fenced/executor-kit/supervisor";
import { closePodNetwork } from "../network/pod-network.ts";
import type { PodClient } from "./pod-client.ts";
import type { PodLink } from "./pod-link.ts";
import type { PodSource } from "./pod-source.ts";
import { type Pod, whyEnded } from "./pod-state.ts";

/** Milliseconds to wait for the API to report why a pod ended: it learns that from the node, a little later. */
const explainMs = 6000;
/** Milliseconds for the deletion of a pod: a server that does not answer must not hold up `stop()`. */
const endMs = 15_000;

/** A pod, and the way to its supervisor. */
export interface PodEntry {
  readonly metadata: Pod["metadata"];
  readonly remove: PodSource["remove"];
  readonly streams: SupervisorStreams;
  /** What the streams belong to if the session outlives its connections. Default: it ends with them. */
  readonly link?: PodLink | undefined;
  /** A NetworkPolicy cuts it off. Default: not yet. */
  readonly hasPolicy?: boolean;
}

/** A monitored pod whose supervisor responds. */
export class RunningPod {
  /** As the API reported it when the pod began to run. */
  readonly metadata: Pod["metadata"];
  readonly inventory: SupervisorInventory;
  readonly supervisor: Supervisor;
  readonly #client: PodClient;
  readonly #remove: PodSource["remove"];
  readonly #streams: SupervisorStreams;
  readonly #link: PodLink | undefined;
  readonly #heartbeat: Heartbeat | undefined;
  readonly #loss: Loss;
  #hasPolicy: boolean;

  private constructor(
    client: PodClient,
    { metadata, remove, streams, link, hasPolicy = false }: PodEntry,
    { inventory, supervisor }: { readonly inventory: SupervisorInventory; readonly supervisor: Supervisor },
  ) {
    this.#client = client;
    this.metadata = metadata;
    this.#remove = remove;
    this.#streams = streams;
    this.#link = link;
    this.#hasPolicy = hasPolicy;
    this.inventory = inventory;
    this.supervisor = supervisor;
    // A link has its own, and comes back.
    this.#heartbeat = link
      ? undefined
      : new Heartbeat({
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
        // Nobody else can use it, if it is still this program's.
        void link?.end();
        this.#letGo();
      },
    );
  }

  /**
   * Connects to the supervisor in a pod.
   *
   * @throws BackendUnavailableError if it does not answer; the signal's reason.
   */
  static async open(client: PodClient, entry: PodEntry, signal: AbortSignal): Promise<RunningPod> {
    const { streams, link } = entry;
    let early: Error | undefined;
    let report = (error: Error): void => {
      early = error;
    };
    const onLost = (error: Error): void => report(error);
    const isCut = (): boolean => link?.isCut === true;
    const { inventory, supervisor } = await connectSupervisor(streams, { signal, onLost, isCut });
    if (!supervisor) throw new Error("something other than the supervisor answered");
    const opened = new RunningPod(client, entry, { inventory, supervisor });
    report = (error) => void opened.#loss.report(error);
    if (early) report(early);
    return opened;
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

  /** Ends the pod, unless another program uses it now. Does nothing if it is gone. */
  async end(): Promise<void> {
    this.#loss.cancel();
    const isOurs = (await this.#link?.end()) ?? true;
    this.#letGo();
    if (!isOurs) return;
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

  /** Lets go of a session that outlives this program. */
  async leave(): Promise<void> {
    this.#loss.cancel();
    await this.#link?.detach();
    this.#letGo();
  }

  /** Another program uses its session now. */
  get isTakenOver(): boolean {
    return this.#link?.isReplaced === true;
  }

  async #explain(hint: Error): Promise<Error> {
    if (ExecutorStoppedError.isInstance(hint)) return hint;
    const why = (await whyLost(this.#client, this.name)) ?? hint.message;
    return new BackendUnavailableError(`The pod ${this.name} is lost: ${why}`, {
      remedy: "Call again to use a new pod. If it happens again: kubectl get events",
    });
  }

  #letGo(): void {
    this.#heartbeat?.stop();
    if (this.#link) this.#link.close();
    else this.#streams.stdin.destroy();
  }
}

/** Why a pod ended, according to the API; `undefined` if it does not answer or sees nothing wrong. Never rejects. */
export async function whyLost(client: PodClient, name: string): Promise<string | undefined> {
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
