import type { KubernetesExecutorOptions } from "../kubernetes-executor-options.ts";
import type { DeleteOptions, PodClient } from "./pod-client.ts";
import { podManifest } from "./pod-manifest.ts";

/** Where a session's pod comes from. */
export interface PodSource {
  /** The abstract socket at which the pod's main process waits. */
  readonly keeper: string;
  /** Requests the pod. */
  readonly request: (signal: AbortSignal) => Promise<void>;
  /** Waits for the pod, and returns its name; `seen` records what it is waiting for, for errors. */
  readonly find: (seen: { last: string }, signal: AbortSignal) => Promise<string>;
  /** Deletes the pod and everything that was requested. Does nothing if it is gone. */
  readonly remove: (options?: DeleteOptions) => Promise<void>;
}

/** A pod that is created for the session. */
export function ownPod(
  client: PodClient,
  options: KubernetesExecutorOptions,
  { name, owner }: { readonly name: string; readonly owner: string },
): PodSource {
  return {
    keeper: name,
    request: (signal) => client.create(podManifest(options, { name, owner }), signal),
    find: async () => name,
    remove: (how) => client.delete(name, how),
  };
}
