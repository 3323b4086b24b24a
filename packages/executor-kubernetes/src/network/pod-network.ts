import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import { blockEnvironment } from "@fenced/executor-kit";
import type { Supervisor } from "@fenced/executor-kit/supervisor";
import type { PodClient } from "../pod/pod-client.ts";
import type { Pod } from "../pod/pod-state.ts";
import { allowsTraffic, denyAll, restricts } from "./network-policies.ts";

const reachProgram: string = readFileSync(new URL("./reach.py", import.meta.url), "utf8");

/** Seconds that what answers in an open network takes for it, and in which what a policy cuts off has to stay silent. */
const [openSeconds, closedSeconds] = [1, 0.5];
/** Milliseconds that a cluster's network plugin gets to enforce a policy. */
const enforcedMs = 10_000;
const pauseMs = 200;

/** A pod in which no code has run yet. */
export interface QuietPod {
  readonly client: PodClient;
  readonly metadata: Pod["metadata"];
  readonly supervisor: Supervisor;
  /** Python there. */
  readonly python: string;
}

/**
 * Cuts a pod off from every network, and sees from inside that it is: what answered before must not answer any more.
 *
 * @throws BackendUnavailableError if a right is missing, another policy lets traffic through, or the cluster does not enforce
 * policies, or that cannot be seen; the signal's reason.
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
    // Another policy has closed it before: that nothing answered is what was to be seen.
    if (others.length > 0) return;
    throw notSeen();
  }
  const end = performance.now() + enforcedMs;
  let left = open;
  while ((left = await reached(pod, closedSeconds, left, signal)).length > 0) {
    if (performance.now() > end) throw notEnforced(left);
    await sleep(pauseMs, undefined, { signal });
  }
  // All at once: while one was waited for, another one may have answered again.
  if ((left = await reached(pod, closedSeconds, open, signal)).length > 0) throw notEnforced(left);
}

/** Which targets answer in the pod; without any, its API server and name servers are asked. */
async function reached(
  { supervisor, python }: QuietPod,
  seconds: number,
  targets: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  const argv = [python, "-I", "-c", reachProgram, String(seconds), ...targets];
  const said = { stdout: "", stderr: "" };
  const program = supervisor.run({ argv, env: { ...blockEnvironment }, signal });
  let step = await program.next();
  for (; step.done !== true; step = await program.next()) {
    const event = step.value;
    if (event.type === "stdout" || event.type === "stderr") said[event.type] += Buffer.from(event.data).toString();
  }
  signal.throwIfAborted();
  if (step.value.exitCode === 0) return said.stdout.split("\n").filter((line) => line !== "");
  throw new BackendUnavailableError(
    `Could not check whether the pod's network is closed: ${said.stderr.trim().slice(-500)}`,
    { remedy: 'Use an image whose Python has the standard library, or set `network` to "open".' },
  );
}

function letsThrough(name: string): BackendUnavailableError {
  return new BackendUnavailableError(`The NetworkPolicy ${name} lets this executor's pods talk to something`, {
    remedy:
      'Policies add up, so nothing can close what another one opens: delete it, have its podSelector leave out pods with the label app.kubernetes.io/managed-by=fenced, use another `namespace`, or set `network` to "open".',
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
