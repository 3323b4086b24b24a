import { BackendUnavailableError } from "@fenced/core";
import { lateSignal, untilAborted } from "@fenced/core/abort";
import type { SupervisorConfig } from "@fenced/executor-kit/supervisor";
import type { KubernetesExecutorOptions } from "../kubernetes-executor-options.ts";
import type { PodClient } from "./pod-client.ts";
import { defaultStartMs, workspacePath } from "./pod-manifest.ts";
import type { PodSource } from "./pod-source.ts";
import { type Pod, progressOf } from "./pod-state.ts";
import { RunningPod } from "./running-pod.ts";

/** What a pod is made for. */
export interface PodRequest {
  readonly options: KubernetesExecutorOptions;
  readonly client: PodClient;
  /** Of the pod, or of the claim on one. */
  readonly name: string;
  readonly source: PodSource;
  /** A directory of the session in the pod. */
  readonly directory: string;
  /** Programs to look for. */
  readonly programs: readonly string[];
}

/** Milliseconds until a claim on a warm pool has to be served. */
const defaultClaimMs = 30_000;
/** Milliseconds for what is left of a pod that could not be opened: the caller does not wait for longer. */
const cleanUpMs = 3000;

/**
 * Makes a pod, waits until it runs, and starts the supervisor in it.
 *
 * @throws BackendUnavailableError if it does not get there; InvalidInputError if the cluster does not accept it; the signal's reason.
 */
export async function openPod(request: PodRequest, signal: AbortSignal): Promise<RunningPod> {
  const { client, name, options, source } = request;
  const { startTimeoutMs = options.warmPool ? defaultClaimMs : defaultStartMs } = options;
  const late = Number.isFinite(startTimeoutMs) ? AbortSignal.timeout(startTimeoutMs) : new AbortController().signal;
  const either = AbortSignal.any([signal, late]);
  const seen = { last: "the API server" };
  // Goes on for a moment when the caller gives up: what the server may be making has to be there before it can be deleted.
  using giveUp = lateSignal(either, cleanUpMs);
  const created = source.request(giveUp.signal);
  try {
    await untilAborted(created, either);
    const found = await source.find(seen, either);
    const { metadata } = await untilRunning(request, found, seen, either);
    return await RunningPod.open(
      client,
      { metadata, supervisor: supervisorOf(request), remove: source.remove },
      either,
    );
  } catch (error) {
    await created.catch(() => {});
    // It may have been made although nobody said so.
    await source.remove({ signal: AbortSignal.timeout(cleanUpMs) }).catch(() => {});
    if (signal.aborted || !late.aborted) throw error;
    throw new BackendUnavailableError(
      `The pod ${name} did not run within ${startTimeoutMs / 1000} s; it waited for ${seen.last}`,
      { remedy: "Find out why with `kubectl get events`, or raise `startTimeoutMs`.", cause: error },
    );
  }
}

async function untilRunning(
  { client, options }: PodRequest,
  name: string,
  seen: { last: string },
  signal: AbortSignal,
): Promise<Pod> {
  let pulling = "";
  for await (const pod of client.follow(name, signal)) {
    const progress = pod ? progressOf(pod, options.waitForNodes ?? false) : gone;
    if (pod && progress.state === "running") return pod;
    if (progress.state === "failed") {
      throw new BackendUnavailableError(`The pod ${name} cannot run: ${progress.why}${pulling}`, {
        remedy: progress.remedy,
      });
    }
    seen.last = progress.state === "waiting" ? progress.for : "its node";
    // The back-off, which comes next, does not say any more why.
    if (seen.last.startsWith("ErrImagePull: ")) pulling = `; ${seen.last}`;
  }
  throw new BackendUnavailableError(`The pod ${name} cannot run: ${gone.why}`, { remedy: gone.remedy });
}

const gone = {
  state: "failed",
  why: "something deleted it",
  remedy: "Find out what deletes pods in the namespace.",
} as const;

function supervisorOf({ source, directory, programs, options }: PodRequest): SupervisorConfig {
  const searchPath = options.env?.["PATH"];
  return {
    directory,
    workspace: workspacePath,
    programs,
    alone: true,
    keeper: source.keeper,
    ...(searchPath === undefined ? {} : { path: searchPath }),
  };
}
