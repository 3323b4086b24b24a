import type { ClusterAccess } from "../cluster/cluster-access.ts";
import type { PodClient } from "./pod-client.ts";
import { startTimeoutAnnotation } from "./pod-manifest.ts";
import type { Pod } from "./pod-state.ts";

/** Milliseconds between two sweeps of a namespace. */
const pauseMs = 600_000;
/** Milliseconds that a session gets to read why its own pod failed, or to give up waiting for it. */
const ownMs = 60_000;
const swept = new Map<string, number>();

/**
 * Deletes, at most every ten minutes, leftover pods of programs that were killed: those that have ended, and those that never
 * ran. Never rejects.
 *
 * @param now - the time on the cluster's clock, in milliseconds.
 */
export async function sweepIdle(client: PodClient, { server }: ClusterAccess, now: number): Promise<void> {
  const place = `${server.href} ${client.namespace}`;
  const last = swept.get(place);
  if (last !== undefined && performance.now() - last < pauseMs) return;
  swept.set(place, performance.now());
  try {
    for (const pod of await client.idle()) if (isLeft(pod, now)) await remove(client, pod);
  } catch {
    // A missing permission only leaves these pods behind, for the next sweep or the cluster to collect.
  }
}

function isLeft({ metadata, status }: Pod, now: number): boolean {
  const age = now - Date.parse(metadata.creationTimestamp ?? "");
  if (metadata.deletionTimestamp !== undefined) return false;
  // It ended because nothing was connected to it any more.
  if (status.phase === "Succeeded") return true;
  if (status.phase === "Failed") return age > ownMs;
  const patience = Number(metadata.annotations?.[startTimeoutAnnotation]);
  return status.phase === "Pending" && age > patience + ownMs;
}

/** A Job would create another pod. */
async function remove(client: PodClient, { metadata: { name, ownerReferences = [] } }: Pod): Promise<void> {
  const job = ownerReferences.find(({ kind }) => kind === "Job");
  await (job ? client.deleteJob(job.name) : client.delete(name));
}
