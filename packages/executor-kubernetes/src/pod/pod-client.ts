import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import type { ApiClient } from "../cluster/api-client.ts";
import { statusOf } from "../cluster/api-error.ts";
import { containerName, managedBy, managedLabel, type PodManifest } from "./pod-manifest.ts";
import { readPod, type Pod } from "./pod-state.ts";

/** Milliseconds between two looks at a pod that cannot be watched just now. */
const lookMs = 500;

/** The requests that sessions make about pods of one namespace. */
export class PodClient {
  readonly namespace: string;
  readonly #api: ApiClient;

  constructor(api: ApiClient, namespace: string) {
    this.#api = api;
    this.namespace = namespace;
  }

  /** Makes a pod. One that the server has made without being able to say so counts as made. */
  async create(manifest: PodManifest, signal: AbortSignal): Promise<void> {
    try {
      await this.#api.send({ method: "POST", path: this.#path(), body: manifest, signal });
    } catch (error) {
      // Its name is unique in the world: an earlier attempt came through.
      if (statusOf(error) !== 409) throw error;
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
   * The pod as it is now, and then whenever it changes; `undefined` when it is deleted, which is the last that there is.
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
      // The server ends a watch after a while, or when it ends itself.
      await sleep(lookMs, undefined, { signal });
      const pod = await this.get(name, signal);
      yield pod;
      if (!pod) return;
    }
  }

  /** Deletes a pod at once; does no harm if it is gone. */
  async delete(name: string, patient = true): Promise<void> {
    try {
      await this.#api.send({ method: "DELETE", path: `${this.#path(name)}?gracePeriodSeconds=0`, patient });
    } catch (error) {
      if (statusOf(error) !== 404) throw error;
    }
  }

  /** Deletes what is left of pods that have ended by themselves, since the program that made them died. */
  async deleteEnded(): Promise<void> {
    const query = `labelSelector=${encodeURIComponent(`${managedLabel}=${managedBy}`)}&fieldSelector=status.phase%3DSucceeded`;
    await this.#api.send({ method: "DELETE", path: `${this.#path()}?${query}`, patient: false });
  }

  /** Starts a program beside the pod's own. */
  exec(name: string, command: readonly string[], signal: AbortSignal): Promise<WebSocket> {
    const query = new URLSearchParams({ container: containerName, stdin: "true", stdout: "true", stderr: "true" });
    for (const word of command) query.append("command", word);
    return this.#api.exec(`${this.#path(name)}/exec?${query.toString()}`, signal);
  }

  #path(name?: string): string {
    const pods = `/api/v1/namespaces/${encodeURIComponent(this.namespace)}/pods`;
    return name === undefined ? pods : `${pods}/${name}`;
  }
}
