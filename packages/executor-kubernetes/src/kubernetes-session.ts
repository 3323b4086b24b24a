import { randomUUID } from "node:crypto";
import { untilAborted, within } from "@fenced/core/abort";
import { EgressProxy } from "@fenced/egress";
import {
  type BackendFiles,
  type CommandLineSessionRequest,
  findPlaceLanguages,
  programsPlace,
  programsOf,
  RemoteFiles,
} from "@fenced/executor-kit";
import { requestedSettings, SessionNetwork, SupervisedFiles, SupervisedSession } from "@fenced/executor-kit/supervisor";
import { ClaimClient } from "./claim/claim-client.ts";
import { claimedPod } from "./claim/claimed-pod.ts";
import { ApiClient } from "./cluster/api-client.ts";
import { findCluster } from "./cluster/kubeconfig.ts";
import type { KubernetesExecutorOptions } from "./kubernetes-executor-options.ts";
import { openPod } from "./pod/open-pod.ts";
import { PodClient } from "./pod/pod-client.ts";
import { defaultImage, memorySentence, workspacePath } from "./pod/pod-manifest.ts";
import { PodPlace } from "./pod/pod-place.ts";
import { ownPod, type PodSource } from "./pod/pod-source.ts";
import type { RunningPod } from "./pod/running-pod.ts";
import { sweepIdle } from "./pod/sweep-idle.ts";

type SessionRequest = CommandLineSessionRequest<KubernetesExecutorOptions>;

/** Milliseconds that closing waits for the clean-up of other programs' pods. */
const sweepMs = 2000;

/** Everything that exists while the executor is started. A lost pod is replaced by an empty one for the next block. */
export class KubernetesSession extends SupervisedSession<PodPlace> {
  readonly #request: SessionRequest;
  readonly #api: ApiClient;
  readonly #client: PodClient;
  readonly #network: SessionNetwork | undefined;
  /** Its own files in the workspace. */
  readonly #filePrefix: string;
  /** Runs in the background. */
  #sweeping: Promise<void> = Promise.resolve();
  #hasPackage: boolean;

  private constructor(request: SessionRequest) {
    const { options, id, functions } = request;
    const cluster = findCluster(options);
    const network = SessionNetwork.of(options.network, EgressProxy);
    const directory = `/tmp/fenced-${id.slice(0, 8)}`;
    const places = { workspacePath, directory, network, memorySentence: memorySentence(options) };
    super({ ...requestedSettings(request), ...places });
    this.#request = request;
    this.#api = new ApiClient(cluster);
    this.#client = new PodClient(this.#api, options.namespace ?? cluster.namespace ?? "default");
    this.#network = network;
    this.#filePrefix = `.fenced-${id.slice(0, 8)}-`;
    this.#hasPackage = functions.some(({ language }) => language === "javascript");
  }

  /** Finds the cluster, and creates the first pod. */
  static async open(request: SessionRequest, signal: AbortSignal): Promise<KubernetesSession> {
    const session = new KubernetesSession(request);
    try {
      const { pod } = await session.ready(signal);
      // The pod was created a moment ago, so this is the time on the cluster's clock.
      const now = Date.parse(pod.metadata.creationTimestamp ?? "");
      session.#sweeping = sweepIdle(session.#client, session.#api.cluster, now);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  /** The pod that blocks currently run in. */
  get podName(): string | undefined {
    return this.current?.pod.name;
  }

  protected override claimFunctionsPackage(): void {
    this.#hasPackage = true;
  }

  protected override async openPlace(old: PodPlace | undefined, signal: AbortSignal): Promise<PodPlace> {
    const { options, id, table, givenLanguages } = this.#request;
    // If it cannot be deleted, it ends on its own.
    const ended = old?.end().catch(() => {});
    if (ended) await untilAborted(ended, signal);
    const name = `fenced-${id.slice(0, 8)}-${randomUUID().slice(0, 12)}`;
    const pool = options.warmPool?.name;
    const pod = await openPod(
      {
        options,
        client: this.#client,
        name,
        source: this.#source(name),
        directory: this.directory,
        programs: programsOf(table),
      },
      signal,
    );
    try {
      const image =
        pool === undefined
          ? programsPlace(`the image ${options.image ?? defaultImage}`, options.env)
          : { name: `the image of the warm pool ${pool}`, remedy: "use an image that has it in its SandboxTemplate" };
      const languages = findPlaceLanguages(table, givenLanguages, pod.inventory, image);
      if ((options.network ?? "open") !== "open") await pod.closeNetwork(signal);
      const networkVariables = (await this.#network?.enter(pod.supervisor)) ?? {};
      const { cleanupTempFiles = true } = options;
      const own = { filePrefix: this.#filePrefix, cleanupTempFiles };
      return new PodPlace(pod, { languages, files: this.#filesOf(pod), networkVariables, ...own });
    } catch (error) {
      await pod.end().catch(() => {});
      throw error;
    }
  }

  protected override async closeWith(place: PodPlace | undefined): Promise<void> {
    try {
      await place?.end();
      await within(sweepMs, this.#sweeping);
    } finally {
      await this.#network?.close();
      this.#api.close();
    }
  }

  /** A pod from a warm pool, or the session's own. */
  #source(name: string): PodSource {
    const { options, id: owner } = this.#request;
    const pool = options.warmPool?.name;
    if (pool === undefined) return ownPod(this.#client, options, { name, owner });
    return claimedPod(new ClaimClient(this.#api, this.#client.namespace), options, { name, owner, pool });
  }

  #filesOf({ inventory }: RunningPod): BackendFiles {
    const access = new SupervisedFiles({
      workspace: workspacePath,
      python: inventory.programs.get("python3") ?? inventory.programs.get("python") ?? "python3",
      filePrefix: this.#filePrefix,
      supervisor: async () => (await this.ready(this.closing)).pod.supervisor,
    });
    const packages = `node_modules/${this.#request.functionsModule}/`;
    return new RemoteFiles(
      access,
      (file) => file.startsWith(this.#filePrefix) || (this.#hasPackage && file.startsWith(packages)),
    );
  }
}
