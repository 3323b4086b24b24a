import { ClaimClient } from "../claim/claim-client.ts";
import { claimedPod } from "../claim/claimed-pod.ts";
import type { ApiClient } from "../cluster/api-client.ts";
import type { KubernetesExecutorOptions } from "../kubernetes-executor-options.ts";
import type { DeleteOptions, PodClient } from "./pod-client.ts";
import { podManifest } from "./pod-manifest.ts";

/** Where a session's pod comes from. */
export interface PodSource {
  /** The abstract socket at which the pod's main process waits. */
  readonly keeper: string;
  /** Asks for it. */
  readonly request: (signal: AbortSignal) => Promise<void>;
  /** The name of the pod, once there is one; `seen` is what it waits for, for errors. */
  readonly find: (seen: { last: string }, signal: AbortSignal) => Promise<string>;
  /** Deletes it, and all that was asked for. Does no harm if it is gone. */
  readonly remove: (options?: DeleteOptions) => Promise<void>;
}

/** The pod that these options ask for: one of a warm pool, or one of the session's own. */
export function podSource(
  client: PodClient,
  options: KubernetesExecutorOptions,
  { api, name, owner }: { readonly api: ApiClient; readonly name: string; readonly owner: string },
): PodSource {
  if (options.warmPool) {
    const pool = options.warmPool.name;
    return claimedPod(new ClaimClient(api, client.namespace), options, { name, owner, pool });
  }
  return {
    keeper: name,
    request: (signal) => client.create(podManifest(options, { name, owner }), signal),
    find: async () => name,
    remove: (how) => client.delete(name, how),
  };
}
