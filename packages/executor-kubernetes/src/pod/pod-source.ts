import type { KubernetesExecutorOptions } from "../kubernetes-executor-options.ts";
import type { DeleteOptions, PodClient } from "./pod-client.ts";
import { jobManifest, type PodIdentity, podManifest } from "./pod-manifest.ts";

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
export function ownPod(client: PodClient, options: KubernetesExecutorOptions, pod: PodIdentity): PodSource {
  const { name } = pod;
  return {
    keeper: name,
    request: (signal) => client.create(podManifest(options, pod), signal),
    find: async () => name,
    remove: (how) => client.delete(name, how),
  };
}

/**
 * A pod whose session outlives its program, so that the cluster must delete it when it has ended: it belongs to a Job of this
 * name.
 */
export function jobPod(client: PodClient, options: KubernetesExecutorOptions, pod: PodIdentity): PodSource {
  const { name } = pod;
  return {
    keeper: name,
    request: async (signal) => {
      // What forbids the pod would otherwise be known only to the Job.
      await client.check(podManifest(options, pod), signal);
      await client.createJob(jobManifest(options, pod), signal);
    },
    find: (seen, signal) => {
      seen.last = `its Job, which has not created it (kubectl describe job ${name})`;
      return client.find(name, signal);
    },
    remove: async (how) => {
      await client.deleteJob(name, how?.signal);
      await client.deleteAll(name, how);
    },
  };
}
