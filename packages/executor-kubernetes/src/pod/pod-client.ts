import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import type { ApiClient } from "../cluster/api-client.ts";
import { statusOf } from "../cluster/api-error.ts";
import { networkPolicyList, type NetworkPolicyObject } from "../network/network-policies.ts";
import { containerName, managedBy, managedLabel, type PodManifest } from "./pod-manifest.ts";
import { readPod, type Pod } from "./pod-state.ts";

/** Milliseconds between checks of a pod that cannot be watched at the moment. */
const lookMs = 500;
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
  async create(manifest: PodManifest, signal: AbortSignal): Promise<void> {
    for (let left = conflicts; ; left--) {
      try {
        await this.#api.create(this.#path(), manifest, signal);
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

  /** The pods of all sessions that are not running: those that have ended, and those that are pending. */
  async idle(): Promise<Pod[]> {
    const query = `labelSelector=${encodeURIComponent(`${managedLabel}=${managedBy}`)}&fieldSelector=status.phase%21%3DRunning&limit=500`;
    const list = await this.#api.send({ method: "GET", path: `${this.#path()}?${query}`, patient: false });
    const items: unknown = Reflect.get(Object(list), "items");
    return Array.isArray(items) ? items.map(readPod).filter((pod) => pod !== undefined) : [];
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

  get #policies(): string {
    return `/apis/networking.k8s.io/v1/namespaces/${encodeURIComponent(this.namespace)}/networkpolicies`;
  }

  #path(name?: string): string {
    const pods = `/api/v1/namespaces/${encodeURIComponent(this.namespace)}/pods`;
    return name === undefined ? pods : `${pods}/${name}`;
  }
}
