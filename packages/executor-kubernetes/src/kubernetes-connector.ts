import { randomUUID } from "node:crypto";
import { within } from "@fenced/core/abort";
import { EgressProxy } from "@fenced/egress";
import { type CommandLineRequest, findPlaceLanguages, programsPlace, programsOf } from "@fenced/executor-kit";
import {
  type Connection,
  type Connector,
  pythonOf,
  requestedSettings,
  SentWorkspace,
  SessionNetwork,
  SupervisedBackend,
} from "@fenced/executor-kit/supervisor";
import { ClaimClient } from "./claim/claim-client.ts";
import { claimedPod } from "./claim/claimed-pod.ts";
import { ApiClient } from "./cluster/api-client.ts";
import { findCluster } from "./cluster/kubeconfig.ts";
import type { KubernetesExecutorOptions } from "./kubernetes-executor-options.ts";
import { openPod } from "./pod/open-pod.ts";
import { PodClient } from "./pod/pod-client.ts";
import { defaultImage, memorySentence, workspacePath } from "./pod/pod-manifest.ts";
import { ownPod, type PodSource } from "./pod/pod-source.ts";
import type { RunningPod } from "./pod/running-pod.ts";
import { sweepIdle } from "./pod/sweep-idle.ts";

type KubernetesRequest = CommandLineRequest<KubernetesExecutorOptions>;

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
    const { options } = request;
    const cluster = findCluster(options);
    this.#request = request;
    this.#api = new ApiClient(cluster);
    this.#client = new PodClient(this.#api, options.namespace ?? cluster.namespace ?? "default");
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
    const { options, id, table } = this.#request;
    const name = `fenced-${id.slice(0, 8)}-${randomUUID().slice(0, 12)}`;
    const directory = `/tmp/fenced-${id.slice(0, 8)}`;
    const source = this.#source(name);
    const pod = await openPod(
      { options, client: this.#client, name, source, directory, programs: programsOf(table) },
      signal,
    );
    try {
      if ((options.network ?? "open") !== "open") await pod.closeNetwork(signal);
    } catch (error) {
      await pod.end().catch(() => {});
      throw error;
    }
    this.#current = pod;
    // The first pod was created a moment ago, so this is the time on the cluster's clock.
    this.#sweeping ??= sweepIdle(this.#client, this.#api.cluster, Date.parse(pod.metadata.creationTimestamp ?? ""));
    return this.#connectionTo(pod, directory);
  }

  async close(): Promise<void> {
    this.#current = undefined;
    try {
      if (this.#sweeping) await within(sweepMs, this.#sweeping);
    } finally {
      this.#api.close();
    }
  }

  #connectionTo(pod: RunningPod, directory: string): Connection {
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
      directory,
      lost: pod.lost,
      isLosing: () => pod.isLosing,
      // If it cannot be deleted, it ends on its own.
      end: ({ isReplaced }) => (isReplaced ? pod.end().catch(() => {}) : pod.end()),
    };
  }

  /** A pod from a warm pool, or the session's own. */
  #source(name: string): PodSource {
    const { options, id: owner } = this.#request;
    const pool = options.warmPool?.name;
    if (pool === undefined) return ownPod(this.#client, options, { name, owner });
    return claimedPod(new ClaimClient(this.#api, this.#client.namespace), options, { name, owner, pool });
  }
}
