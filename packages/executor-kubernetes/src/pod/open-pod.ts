import { BackendUnavailableError } from "@fenced/core";
import type { SupervisorConfig } from "@fenced/executor-kit/supervisor";
import type { KubernetesExecutorOptions } from "../kubernetes-executor-options.ts";
import type { PodClient } from "./pod-client.ts";
import { keeperName, podManifest, workspacePath } from "./pod-manifest.ts";
import { progressOf } from "./pod-state.ts";
import { RunningPod } from "./running-pod.ts";

/** What a pod is made for. */
export interface PodRequest {
  readonly options: KubernetesExecutorOptions;
  readonly client: PodClient;
  readonly name: string;
  /** The executor's id. */
  readonly owner: string;
  /** A directory of the session in the pod. */
  readonly directory: string;
  /** Programs to look for. */
  readonly programs: readonly string[];
}

const defaultStartMs = 300_000;

/**
 * Makes a pod, waits until it runs, and starts the supervisor in it.
 *
 * @throws BackendUnavailableError if it does not get there; InvalidInputError if the cluster does not accept it; the signal's reason.
 */
export async function openPod(request: PodRequest, signal: AbortSignal): Promise<RunningPod> {
  const { client, name, options, owner } = request;
  const { startTimeoutMs = defaultStartMs } = options;
  const late = Number.isFinite(startTimeoutMs) ? AbortSignal.timeout(startTimeoutMs) : new AbortController().signal;
  const either = AbortSignal.any([signal, late]);
  const seen = { last: "the API server" };
  const created = client.create(podManifest(options, { name, owner }), either);
  try {
    await created;
    await untilRunning(request, seen, either);
    return await RunningPod.open(client, { name, supervisor: supervisorOf(request) }, either);
  } catch (error) {
    // It may have been made although nobody said so.
    await client.delete(name, false).catch(() => {});
    if (signal.aborted || !late.aborted) throw error;
    throw new BackendUnavailableError(
      `The pod ${name} did not run within ${startTimeoutMs / 1000} s; it waited for ${seen.last}`,
      { remedy: "See what holds it up with `kubectl get events`, or raise `startTimeoutMs`.", cause: error },
    );
  }
}

async function untilRunning(
  { client, name, options }: PodRequest,
  seen: { last: string },
  signal: AbortSignal,
): Promise<void> {
  let pulling = "";
  for await (const pod of client.follow(name, signal)) {
    const progress = pod ? progressOf(pod, options.waitForNodes ?? false) : gone;
    if (progress.state === "running") return;
    if (progress.state === "failed") {
      throw new BackendUnavailableError(`The pod ${name} cannot run: ${progress.why}${pulling}`, {
        remedy: progress.remedy,
      });
    }
    seen.last = progress.for;
    // The back-off, which comes next, does not say any more why.
    if (progress.for.startsWith("ErrImagePull: ")) pulling = `; ${progress.for}`;
  }
}

const gone = {
  state: "failed",
  why: "something deleted it",
  remedy: "See what deletes pods in the namespace.",
} as const;

function supervisorOf({ directory, programs, options }: PodRequest): SupervisorConfig {
  const searchPath = options.env?.["PATH"];
  return {
    directory,
    workspace: workspacePath,
    programs,
    alone: true,
    keeper: keeperName,
    ...(searchPath === undefined ? {} : { path: searchPath }),
  };
}
