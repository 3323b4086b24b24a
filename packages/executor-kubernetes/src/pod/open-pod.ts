import { BackendUnavailableError } from "@fenced/core";
import { joinSignals, lateSignal, untilAborted } from "@fenced/core/abort";
import { type SupervisorConfig, type SupervisorLoader, supervisorLoader } from "@fenced/executor-kit/supervisor";
import type { WebSocket } from "ws";
import type { KubernetesExecutorOptions } from "../kubernetes-executor-options.ts";
import { EarlyExec } from "./early-exec.ts";
import type { PodClient } from "./pod-client.ts";
import { defaultStartMs, workspacePath } from "./pod-manifest.ts";
import type { PodSource } from "./pod-source.ts";
import { gone, isBeingMade, type Pod, progressOf } from "./pod-state.ts";
import { RunningPod } from "./running-pod.ts";

/** What `openPod` needs. */
export interface PodRequest {
  readonly options: KubernetesExecutorOptions;
  readonly client: PodClient;
  /** The name of the pod, or of the claim on one. */
  readonly name: string;
  readonly source: PodSource;
  /** A directory of the session in the pod. */
  readonly directory: string;
  /** Programs to look for. */
  readonly programs: readonly string[];
}

/** Milliseconds within which a claim on a warm pool must be served. */
const defaultClaimMs = 30_000;
/** Time limit for cleaning up a pod that could not be opened, in milliseconds; the caller waits no longer than that. */
const cleanUpMs = 3000;

/**
 * Creates a pod, waits until it runs, and starts the supervisor in it.
 *
 * @throws BackendUnavailableError if it does not run; InvalidInputError if the cluster does not accept it; the signal's reason.
 */
export async function openPod(request: PodRequest, signal: AbortSignal): Promise<RunningPod> {
  const { client, name, options, source } = request;
  const { startTimeoutMs = options.warmPool ? defaultClaimMs : defaultStartMs } = options;
  const late = Number.isFinite(startTimeoutMs) ? AbortSignal.timeout(startTimeoutMs) : new AbortController().signal;
  const either = joinSignals(signal, late);
  const seen = { last: "the API server" };
  // Continues for a moment after the caller gives up: an object that the server is still creating cannot be deleted yet.
  using giveUp = lateSignal(either, cleanUpMs);
  const created = source.request(giveUp.signal);
  try {
    await untilAborted(created, either);
    const found = await source.find(seen, either);
    const loader = supervisorLoader(supervisorOf(request));
    const { socket, metadata } = await connect(request, { name: found, loader }, seen, either);
    return await RunningPod.open(client, { metadata, socket, program: loader.program, remove: source.remove }, either);
  } catch (error) {
    await created.catch(() => {});
    // It may have been created although the answer was lost.
    await source.remove({ signal: AbortSignal.timeout(cleanUpMs) }).catch(() => {});
    if (signal.aborted || !late.aborted) throw error;
    throw new BackendUnavailableError(
      `The pod ${name} did not run within ${startTimeoutMs / 1000} s; it waited for ${seen.last}`,
      { remedy: "Check `kubectl get events` for the cause, or raise `startTimeoutMs`.", cause: error },
    );
  }
}

/** Follows a pod until it runs, and starts the supervisor in it as soon as that is possible. */
async function connect(
  request: PodRequest,
  { name, loader }: { readonly name: string; readonly loader: SupervisorLoader },
  seen: { last: string },
  signal: AbortSignal,
): Promise<{ readonly socket: WebSocket; readonly metadata: Pod["metadata"] }> {
  const exec = new EarlyExec((attempt) => request.client.exec(name, loader.command, joinSignals(signal, attempt)));
  const connected = new AbortController();
  let metadata: Pod["metadata"] = { name };
  const running = untilRunning(request, name, seen, joinSignals(signal, connected.signal), (pod) => {
    metadata = pod.metadata;
    if (isBeingMade(pod)) exec.begin();
  });
  try {
    const socket = await Promise.race([exec.early, running.then(() => exec.connect())]);
    return { socket, metadata };
  } catch (error) {
    await exec.cancel();
    throw error;
  } finally {
    connected.abort();
  }
}

async function untilRunning(
  { client, options }: PodRequest,
  name: string,
  seen: { last: string },
  signal: AbortSignal,
  look: (pod: Pod) => void,
): Promise<void> {
  let pulling = "";
  for await (const pod of client.follow(name, signal)) {
    if (pod) look(pod);
    const progress = pod ? progressOf(pod, options.waitForNodes ?? false) : gone;
    if (progress.state === "running") return;
    if (progress.state === "failed") {
      throw new BackendUnavailableError(`The pod ${name} cannot run: ${progress.why}${pulling}`, {
        remedy: progress.remedy,
      });
    }
    seen.last = progress.for;
    // The next state, the back-off, no longer contains the reason.
    if (seen.last.startsWith("ErrImagePull: ")) pulling = `; ${seen.last}`;
  }
  throw new BackendUnavailableError(`The pod ${name} cannot run: ${gone.why}`, { remedy: gone.remedy });
}

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
