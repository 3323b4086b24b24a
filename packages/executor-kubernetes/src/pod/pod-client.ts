import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import type { ApiClient } from "../cluster/api-client.ts";
import { notEnding, statusOf } from "../cluster/api-error.ts";
import { networkPolicyList, type NetworkPolicyObject } from "../network/network-policies.ts";
import { containerName, managedBy, managedLabel, podLabel, type PodManifest } from "./pod-manifest.ts";
import { readPod, type Pod } from "./pod-state.ts";

/** Milliseconds between checks of a pod that cannot be watched at the moment. */
const lookMs = 500;
/** Milliseconds to wait until deleted pods are gone, and between checks. */
const [goneMs, goneLookMs] = [5000, 100];
/** How many times to retry a request for a pod that conflicts with others: simultaneous requests update the same quota. */
const conflicts = 20;

/** How a pod is deleted. */
export interface DeleteOptions {
  readonly signal?: AbortSignal | undefined;
  readonly gently?: boolean | undefined;
}

/** Requests about the pods of one namespace. */
export class PodClient {
  readonly namespace: string;
  readonly #api: ApiClient;

  constructor(api: ApiClient, namespace: string) {
    this.#api = api;
    this.namespace = namespace;
  }

  /** Creates a pod. Succeeds if it exists already, because an earlier attempt whose answer was lost created it. */
  create(manifest: PodManifest, signal: AbortSignal): Promise<void> {
    return this.#create(this.#path(), manifest, signal);
  }

  /**
   * Asks whether a pod may be created.
   *
   * @throws like `create`.
   */
  async check(manifest: PodManifest, signal: AbortSignal): Promise<void> {
    try {
      await this.#create(`${this.#path()}?dryRun=All`, manifest, signal);
    } catch (error) {
      // A webhook of the cluster may be unable to tell.
      if (!(error instanceof Error && error.message.includes("does not support dry run"))) throw error;
    }
  }

  async #create(path: string, manifest: PodManifest, signal: AbortSignal): Promise<void> {
    for (let left = conflicts; ; left--) {
      try {
        await this.#api.create(path, manifest, signal);
        return;
      } catch (error) {
        if (statusOf(error) !== 409 || left === 0) throw error;
        await sleep(lookMs * Math.random(), undefined, { signal });
      }
    }
  }

  /** The pod; `undefined` if there is none. */
  async get(name: string, signal: AbortSignal, patient = true): Promise<Pod | undefined> {
    try {
      return readPod(await this.#api.send({ method: "GET", path: this.#path(name), signal, patient }));
    } catch (error) {
      if (statusOf(error) === 404) return undefined;
      throw error;
    }
  }

  /**
   * The pod as it is now, and then whenever it changes; `undefined` when it is deleted, which is the last event.
   *
   * @throws BackendUnavailableError if the server refuses, or cannot be reached for a while; the signal's reason.
   */
  async *follow(name: string, signal: AbortSignal): AsyncGenerator<Pod | undefined, void, void> {
    const query = `watch=1&fieldSelector=metadata.name%3D${name}&timeoutSeconds=300`;
    for (;;) {
      for await (const event of this.#api.watch(`${this.#path()}?${query}`, signal)) {
        const type: unknown = Reflect.get(Object(event), "type");
        if (type === "DELETED") {
          yield undefined;
          return;
        }
        const pod = readPod(Reflect.get(Object(event), "object"));
        if (pod) yield pod;
      }
      // The server ends a watch after a while, or when it stops.
      await sleep(lookMs, undefined, { signal });
      const pod = await this.get(name, signal);
      yield pod;
      if (!pod) return;
    }
  }

  /**
   * Deletes a pod at once, or, `gently`, as soon as its node reports that none of its processes run. Does nothing if it is gone.
   */
  async delete(name: string, { signal, gently = false }: DeleteOptions = {}): Promise<void> {
    await this.#api.delete(`${this.#path(name)}?gracePeriodSeconds=${gently ? 1 : 0}`, signal);
  }

  /**
   * Creates a Job. Succeeds if it exists already, because an earlier attempt whose answer was lost created it.
   *
   * @throws BackendUnavailableError if the cluster would not delete it when it has ended.
   */
  async createJob(manifest: PodManifest, signal: AbortSignal): Promise<void> {
    const made = await this.#api.create(this.#jobs, manifest, signal);
    const spec: unknown = Reflect.get(Object(made), "spec");
    // A server drops fields that it does not know.
    if (made !== undefined && Reflect.get(Object(spec), "ttlSecondsAfterFinished") === undefined) {
      throw notEnding(this.#api.cluster);
    }
  }

  /** Deletes a Job; the cluster deletes its pods in the background. Does nothing if it is gone. */
  async deleteJob(name: string, signal?: AbortSignal): Promise<void> {
    await this.#api.delete(`${this.#jobs}/${name}?propagationPolicy=Background`, signal);
  }

  /** Waits for the pod of a Job, and returns its name. */
  async find(job: string, signal: AbortSignal): Promise<string> {
    for (;;) {
      for await (const event of this.#api.watch(`${this.#path()}?watch=1&${podOf(job)}&timeoutSeconds=300`, signal)) {
        const pod = readPod(Reflect.get(Object(event), "object"));
        if (pod) return pod.metadata.name;
      }
      await sleep(lookMs, undefined, { signal });
    }
  }

  /**
   * Deletes the pods of a Job, and, unless it is done `gently`, waits a moment until they are gone: newer clusters keep their objects
   * until the Job's controller has seen their end.
   */
  async deleteAll(job: string, how: DeleteOptions = {}): Promise<void> {
    const { signal } = how;
    const end = performance.now() + goneMs;
    const deleted = new Set<string>();
    const request = { method: "GET", path: `${this.#path()}?${podOf(job)}`, ...(signal && { signal }) } as const;
    for (;;) {
      const pods = readPods(await this.#api.send(request));
      for (const { metadata } of pods.filter((pod) => !deleted.has(pod.metadata.name))) {
        await this.delete(metadata.name, how);
        deleted.add(metadata.name);
      }
      if (pods.length === 0 || how.gently === true || performance.now() > end) return;
      await sleep(goneLookMs, undefined, signal ? { signal } : {});
    }
  }

  /** The pods of all sessions that are not running: those that have ended, and those that are pending. */
  async idle(): Promise<Pod[]> {
    const query = `labelSelector=${encodeURIComponent(`${managedLabel}=${managedBy}`)}&fieldSelector=status.phase%21%3DRunning&limit=500`;
    return readPods(await this.#api.send({ method: "GET", path: `${this.#path()}?${query}`, patient: false }));
  }

  /** Creates a NetworkPolicy. Succeeds if it exists already, because an earlier attempt whose answer was lost created it. */
  async createPolicy(manifest: object, signal: AbortSignal): Promise<void> {
    await this.#api.create(this.#policies, manifest, signal);
  }

  /** All NetworkPolicies of the namespace. */
  async policies(signal: AbortSignal): Promise<readonly NetworkPolicyObject[]> {
    return networkPolicyList.parse(await this.#api.send({ method: "GET", path: this.#policies, signal })).items;
  }

  /** Starts another program in a running pod. */
  exec(name: string, command: readonly string[], signal: AbortSignal): Promise<WebSocket> {
    const query = new URLSearchParams({ container: containerName, stdin: "true", stdout: "true", stderr: "true" });
    for (const word of command) query.append("command", word);
    return this.#api.exec(`${this.#path(name)}/exec?${query.toString()}`, signal);
  }

  get #jobs(): string {
    return `/apis/batch/v1/namespaces/${encodeURIComponent(this.namespace)}/jobs`;
  }

  get #policies(): string {
    return `/apis/networking.k8s.io/v1/namespaces/${encodeURIComponent(this.namespace)}/networkpolicies`;
  }

  #path(name?: string): string {
    const pods = `/api/v1/namespaces/${encodeURIComponent(this.namespace)}/pods`;
    return name === undefined ? pods : `${pods}/${name}`;
  }
}

/** Selects the pods of a Job, or of a claim, by the label that both give them. */
function podOf(name: string): string {
  return `labelSelector=${encodeURIComponent(`${podLabel}=${name}`)}`;
}

function readPods(list: unknown): Pod[] {
  const items: unknown = Reflect.get(Object(list), "items");
  return Array.isArray(items) ? items.map(readPod).filter((pod) => pod !== undefined) : [];
}
