import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import { joinSignals } from "@fenced/core/abort";
import type { KubernetesExecutorOptions } from "../kubernetes-executor-options.ts";
import {
  defaultActiveSeconds,
  managedBy,
  managedLabel,
  ownerLabel,
  type PodIdentity,
  podLabel,
  poolKeeper,
} from "../pod/pod-manifest.ts";
import type { PodSource } from "../pod/pod-source.ts";
import type { ClaimClient, SandboxClaim } from "./claim-client.ts";

/** Milliseconds within which a controller must report anything about a claim. */
const silenceMs = 10_000;
const retryMs = 500;
/** Reasons for a failure of a claim that waiting does not fix. */
const hopeless = /NotFound|Invalid|Rejected|Disallowed|Forbidden|NotOwned|Expired/;

/** A pod from a warm pool of agent-sandbox, obtained by a claim. */
export function claimedPod(
  client: ClaimClient,
  options: KubernetesExecutorOptions,
  { name, owner, pool }: PodIdentity & { readonly pool: string },
): PodSource {
  return {
    keeper: poolKeeper,
    request: async (signal) => {
      // Without the pool, the controller would retry forever.
      await client.pool(pool, signal);
      await client.create(claimManifest(options, { name, owner, pool }), signal);
    },
    find: (seen, signal) => untilServed(client, { name, pool }, seen, signal),
    remove: ({ signal } = {}) => client.delete(name, signal),
  };
}

function claimManifest(
  { labels, activeDeadlineSeconds = defaultActiveSeconds }: KubernetesExecutorOptions,
  { name, owner, pool }: PodIdentity & { readonly pool: string },
): object {
  return {
    apiVersion: "extensions.agents.x-k8s.io/v1beta1",
    kind: "SandboxClaim",
    metadata: { name, labels: { ...labels, [managedLabel]: managedBy, [ownerLabel]: owner } },
    spec: {
      warmPoolRef: { name: pool },
      // A last resort, which also removes the claim of a killed program, whose pod ends on its own.
      lifecycle: {
        shutdownTime: new Date(Date.now() + activeDeadlineSeconds * 1000).toISOString().replace(/\.\d+Z$/, "Z"),
        ttlSecondsAfterFinished: 0,
        shutdownPolicy: "Delete",
      },
      // agent-sandbox reserves labels of kubernetes.io for itself.
      additionalPodMetadata: { labels: { ...labels, [ownerLabel]: owner, [podLabel]: name } },
    },
  };
}

async function untilServed(
  client: ClaimClient,
  { name, pool }: { readonly name: string; readonly pool: string },
  seen: { last: string },
  signal: AbortSignal,
): Promise<string> {
  seen.last = `agent-sandbox, which did not answer the claim ${name}`;
  const silent = new AbortController();
  const silence = setTimeout(() => silent.abort(), silenceMs);
  const either = joinSignals(signal, silent.signal);
  try {
    for (;;) {
      for await (const claim of client.follow(name, either)) {
        const served = readClaim(claim, seen);
        if (served !== undefined) return await client.podOf(served, signal);
        if (claim.status.conditions.length > 0) clearTimeout(silence);
      }
      await sleep(retryMs, undefined, { signal: either });
    }
  } catch (error) {
    signal.throwIfAborted();
    if (silent.signal.aborted) throw unanswered(name);
    throw error;
  } finally {
    clearTimeout(silence);
    if (signal.aborted) seen.last = await withPool(client, pool, seen.last);
  }
}

/** The sandbox that a claim was given; `undefined` if none yet. */
function readClaim({ status }: SandboxClaim, seen: { last: string }): string | undefined {
  const ready = status.conditions.find(({ type }) => type === "Ready");
  if (!ready) return undefined;
  if (ready.status === "True" && status.sandbox.name !== undefined) return status.sandbox.name;
  const why = [ready.reason, ready.message].filter(Boolean).join(": ");
  if (hopeless.test(ready.reason ?? "")) {
    throw new BackendUnavailableError(`The claim on the warm pool could not be served: ${why}`, {
      remedy: "Correct the SandboxWarmPool or its SandboxTemplate: kubectl describe sandboxwarmpools",
    });
  }
  seen.last = `its claim: ${why}`;
  return undefined;
}

async function withPool(client: ClaimClient, pool: string, last: string): Promise<string> {
  try {
    const { spec, status } = await client.pool(pool, AbortSignal.timeout(2000));
    return `${last} (${status.readyReplicas} of ${spec.replicas} sandboxes of the pool ${pool} are ready)`;
  } catch {
    return last;
  }
}

function unanswered(name: string): BackendUnavailableError {
  return new BackendUnavailableError(`agent-sandbox did not answer the claim ${name} within ${silenceMs / 1000} s`, {
    remedy: "Check that its controller is running, with extensions: kubectl get pods --namespace agent-sandbox-system",
  });
}
