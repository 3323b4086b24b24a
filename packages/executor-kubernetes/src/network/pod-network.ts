import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import { reachedAddresses, type Supervisor } from "@fenced/executor-kit/supervisor";
import type { PodClient } from "../pod/pod-client.ts";
import type { Pod } from "../pod/pod-state.ts";
import { allowsTraffic, denyAll, restricts } from "./network-policies.ts";

/** Seconds within which targets answer while the network is open, and for which they must stay silent once it is closed. */
const [openSeconds, closedSeconds] = [1, 0.5];
/** Milliseconds within which a cluster's network plugin must enforce a policy. */
const enforcedMs = 10_000;
const pauseMs = 200;

/** A pod in which no code has run yet. */
export interface QuietPod {
  readonly client: PodClient;
  readonly metadata: Pod["metadata"];
  readonly supervisor: Supervisor;
  /** The Python interpreter there. */
  readonly python: string;
}

/**
 * Cuts a pod off from every network, and checks this from inside: targets that answered before must no longer answer.
 *
 * @throws BackendUnavailableError if a permission is missing, another policy lets traffic through, the cluster does not enforce
 * policies, or this cannot be determined; the signal's reason.
 */
export async function closePodNetwork(pod: QuietPod, signal: AbortSignal): Promise<void> {
  const { client, metadata } = pod;
  const open = await reached(pod, openSeconds, [], signal);
  await client.createPolicy(denyAll(metadata), signal);
  const others = (await client.policies(signal)).filter(
    (policy) => policy.metadata.name !== metadata.name && restricts(policy, metadata.labels ?? {}),
  );
  const permissive = others.find(allowsTraffic);
  if (permissive) throw letsThrough(permissive.metadata.name);
  if (open.length === 0) {
    // Another policy may already have closed the network, so silence is expected.
    if (others.length > 0) return;
    throw notSeen();
  }
  const end = performance.now() + enforcedMs;
  let left = open;
  while ((left = await reached(pod, closedSeconds, left, signal)).length > 0) {
    if (performance.now() > end) throw notEnforced(left);
    await sleep(pauseMs, undefined, { signal });
  }
  // Check all targets at once: while one was awaited, another may have become reachable again.
  if ((left = await reached(pod, closedSeconds, open, signal)).length > 0) throw notEnforced(left);
}

/** Which targets answer in the pod; by default, its API server and name servers. */
function reached(
  { supervisor, python }: QuietPod,
  seconds: number,
  targets: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  return reachedAddresses(supervisor, { python, seconds, targets, signal });
}

function letsThrough(name: string): BackendUnavailableError {
  return new BackendUnavailableError(`The NetworkPolicy ${name} lets this executor's pods communicate`, {
    remedy:
      'Policies add up, so no policy can close what another one opens: delete it, exclude pods with the label app.kubernetes.io/managed-by=fenced from its podSelector, use another `namespace`, or set `network` to "open".',
  });
}

function notEnforced(targets: readonly string[]): BackendUnavailableError {
  return new BackendUnavailableError(
    `This cluster does not enforce NetworkPolicy: the pod still reaches ${targets.join(", ")} ${enforcedMs / 1000} s after everything was denied`,
    {
      remedy:
        'Use a network plugin that enforces policies (Calico, Cilium), a pod without `hostNetwork`, or set `network` to "open".',
    },
  );
}

function notSeen(): BackendUnavailableError {
  return new BackendUnavailableError(
    "Cannot tell whether this cluster enforces NetworkPolicy: the pod reached neither the API server nor a name server before it was cut off",
    {
      remedy:
        'If that is intended, apply a NetworkPolicy to the namespace that denies everything (docs/kubernetes.md has one). Otherwise fix the network of its pods, or set `network` to "open".',
    },
  );
}
