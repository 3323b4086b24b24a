import { randomUUID } from "node:crypto";
import type { JsonObject } from "@fenced/core";
import { within } from "@fenced/core/abort";
import { EgressProxy } from "@fenced/egress";
import { type CommandLineRequest, findPlaceLanguages, programsPlace, programsOf } from "@fenced/executor-kit";
import {
  type Connection,
  type Connector,
  newAddress,
  pythonOf,
  requestedSettings,
  SentWorkspace,
  type SessionAddress,
  SessionNetwork,
  sessionToJson,
  SupervisedBackend,
} from "@fenced/executor-kit/supervisor";
import { ClaimClient } from "./claim/claim-client.ts";
import { claimedPod } from "./claim/claimed-pod.ts";
import { ApiClient } from "./cluster/api-client.ts";
import { findCluster } from "./cluster/kubeconfig.ts";
import type { KubernetesExecutorOptions } from "./kubernetes-executor-options.ts";
import type { LeftPod } from "./left-session.ts";
import { openLeft, openPod } from "./pod/open-pod.ts";
import { PodClient } from "./pod/pod-client.ts";
import { defaultImage, memorySentence, workspacePath } from "./pod/pod-manifest.ts";
import { jobPod, ownPod, type PodSource } from "./pod/pod-source.ts";
import type { RunningPod } from "./pod/running-pod.ts";
import { sweepIdle } from "./pod/sweep-idle.ts";

interface KubernetesRequest extends CommandLineRequest<KubernetesExecutorOptions> {
  /** A session to connect to instead of creating the first pod. */
  readonly left: LeftPod | undefined;
}

/** How the session of a pod outlives this program. */
interface KeptPod {
  readonly address: SessionAddress;
  /** The name that the pod was requested with. */
  readonly request: string;
  /** An earlier program has left it. */
  readonly isLeft: boolean;
}

/** Milliseconds that closing waits for the clean-up of other programs' pods. */
const sweepMs = 2000;

/** Connects to pods of one cluster, and has what outlives a pod while the executor is started. */
export class KubernetesConnector implements Connector {
  readonly #request: KubernetesRequest;
  readonly #api: ApiClient;
  readonly #client: PodClient;
  /** Runs in the background, once. */
  #sweeping: Promise<void> | undefined;
  #current: RunningPod | undefined;

  /** Finds the cluster. */
  constructor(request: KubernetesRequest) {
    const { options, left } = request;
    const cluster = findCluster(options);
    this.#request = request;
    this.#api = new ApiClient(cluster);
    this.#client = new PodClient(this.#api, left?.namespace ?? options.namespace ?? cluster.namespace ?? "default");
  }

  /** Makes places of its pods. */
  backend(): SupervisedBackend {
    const { options } = this.#request;
    const network = SessionNetwork.of(options.network, EgressProxy);
    const settings = { ...requestedSettings(this.#request), network, memorySentence: memorySentence(options) };
    return new SupervisedBackend(settings, this);
  }

  /** The pod that blocks currently run in. */
  get podName(): string | undefined {
    return this.#current?.name;
  }

  async connect({ signal }: { readonly signal: AbortSignal }): Promise<Connection> {
    const { left } = this.#request;
    return left && !this.#current ? this.#connectTo(left, signal) : this.#connectToNew(signal);
  }

  async #connectTo(left: LeftPod, signal: AbortSignal): Promise<Connection> {
    const { options } = this.#request;
    const { request, takeOver } = left;
    const kept = { address: left, keepAliveMs: options.keepAliveMs ?? 0, takeOver };
    const pod = await openLeft({ options, client: this.#client, source: this.#source(request), kept }, left, signal);
    this.#current = pod;
    return this.#connectionTo(pod, { request, address: left, isLeft: true });
  }

  async #connectToNew(signal: AbortSignal): Promise<Connection> {
    const { options, id, table } = this.#request;
    const { keepAliveMs = 0, network = "open" } = options;
    const name = `fenced-${id.slice(0, 8)}-${randomUUID().slice(0, 12)}`;
    const address = keepAliveMs > 0 ? newAddress() : undefined;
    const kept = address && { address, keepAliveMs, takeOver: false };
    const place = { name, source: this.#source(name), directory: this.#directory, programs: programsOf(table) };
    const pod = await openPod({ options, client: this.#client, kept, ...place }, signal);
    try {
      if (network !== "open") await pod.closeNetwork(signal);
    } catch (error) {
      await pod.end().catch(() => {});
      throw error;
    }
    this.#current = pod;
    // The first pod was created a moment ago, so this is the time on the cluster's clock.
    this.#sweeping ??= sweepIdle(this.#client, this.#api.cluster, Date.parse(pod.metadata.creationTimestamp ?? ""));
    return this.#connectionTo(pod, address && { request: name, address, isLeft: false });
  }

  async close(): Promise<void> {
    this.#current = undefined;
    try {
      if (this.#sweeping) await within(sweepMs, this.#sweeping);
    } finally {
      this.#api.close();
    }
  }

  get #directory(): string {
    return `/tmp/fenced-${this.#request.id.slice(0, 8)}`;
  }

  /** @param kept - how its session outlives this program. Default: it does not. */
  #connectionTo(pod: RunningPod, kept: KeptPod | undefined): Connection {
    const { options, id, table, givenLanguages, functions, functionsModule } = this.#request;
    const pool = options.warmPool?.name;
    const image =
      pool === undefined
        ? programsPlace(`the image ${options.image ?? defaultImage}`, options.env)
        : { name: `the image of the warm pool ${pool}`, remedy: "use an image that has it in its SandboxTemplate" };
    const { inventory, supervisor } = pod;
    return {
      runner: supervisor,
      languages: findPlaceLanguages(table, givenLanguages, inventory, image),
      workspace: new SentWorkspace({
        supervisor,
        python: pythonOf(inventory),
        path: workspacePath,
        filePrefix: `.fenced-${id.slice(0, 8)}-`,
        keepFiles: options.cleanupTempFiles === false,
        functionsModule,
        hasPackage: functions.some(({ language }) => language === "javascript"),
      }),
      directory: this.#directory,
      lost: pod.lost,
      isLosing: () => pod.isLosing,
      ...(kept && { session: this.#sessionOf(pod, kept), isLeft: kept.isLeft }),
      end: async ({ isReplaced, isDetached = false }) => {
        if (isDetached || pod.isTakenOver) await pod.leave();
        // If it cannot be deleted, it ends on its own.
        else await (isReplaced ? pod.end().catch(() => {}) : pod.end());
      },
    };
  }

  /** What a handle says about a session. */
  #sessionOf({ metadata }: RunningPod, { address, request }: KeptPod): JsonObject {
    const { name: pod, uid = "" } = metadata;
    return sessionToJson(
      { id: this.#request.id, ...address },
      { namespace: this.#client.namespace, pod, uid, request },
    );
  }

  /** A pod from a warm pool, or the session's own. */
  #source(name: string): PodSource {
    const { options, id: owner } = this.#request;
    const pool = options.warmPool?.name;
    if (pool === undefined) {
      return ((options.keepAliveMs ?? 0) > 0 ? jobPod : ownPod)(this.#client, options, { name, owner });
    }
    return claimedPod(new ClaimClient(this.#api, this.#client.namespace), options, { name, owner, pool });
  }
}
