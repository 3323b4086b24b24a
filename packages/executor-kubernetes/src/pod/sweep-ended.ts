import type { ClusterAccess } from "../cluster/cluster-access.ts";
import type { PodClient } from "./pod-client.ts";

/** Milliseconds between two sweeps of a namespace. */
const pauseMs = 600_000;
const swept = new Map<string, number>();

/**
 * Deletes, in the background and at most every ten minutes, what is left of pods that ended by themselves: a program that was killed
 * cannot do it, and the next one does.
 */
export function sweepEnded(client: PodClient, { server }: ClusterAccess): void {
  const place = `${server.href} ${client.namespace}`;
  const last = swept.get(place);
  if (last !== undefined && performance.now() - last < pauseMs) return;
  swept.set(place, performance.now());
  // A right that is missing costs the leftovers only, which the cluster collects in the end.
  client.deleteEnded().catch(() => {});
}
