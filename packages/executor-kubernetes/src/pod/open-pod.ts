import { BackendUnavailableError } from "@fenced/core";
import { joinSignals, lateSignal, longestTimer, untilAborted } from "@fenced/core/abort";
import { PlaceGone } from "@fenced/executor-kit";
import {
  sessionHasEnded,
  sessionServerLoader,
  type SupervisorConfig,
  type SupervisorLoader,
  supervisorLoader,
} from "@fenced/executor-kit/supervisor";
import type { WebSocket } from "ws";
import { streamsOf } from "../cluster/exec-socket.ts";
import type { KubernetesExecutorOptions } from "../kubernetes-executor-options.ts";
import type { LeftPod } from "../left-session.ts";
import { EarlyExec } from "./early-exec.ts";
import type { PodClient } from "./pod-client.ts";
import { type KeptSession, PodLink } from "./pod-link.ts";
import { defaultStartMs, workspacePath } from "./pod-manifest.ts";
import type { PodSource } from "./pod-source.ts";
import { gone, isBeingMade, type Pod, progressOf, whyOver } from "./pod-state.ts";
import { RunningPod, whyLost } from "./running-pod.ts";

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
  /** How its session outlives this program. Default: it does not. */
  readonly kept?: KeptSession | undefined;
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
  const { name, options, source } = request;
  const { startTimeoutMs = options.warmPool ? defaultClaimMs : defaultStartMs } = options;
  const late =
    startTimeoutMs > longestTimer ? new AbortController().signal : AbortSignal.timeout(Math.ceil(startTimeoutMs));
  const either = joinSignals(signal, late);
  const seen = { last: "the API server" };
  // Continues for a moment after the caller gives up: an object that the server is still creating cannot be deleted yet.
  using giveUp = lateSignal(either, cleanUpMs);
  const created = source.request(giveUp.signal);
  try {
    await untilAborted(created, either);
    const found = await source.find(seen, either);
    const loader = loaderOf(request);
    const { socket, metadata } = await connect(request, { name: found, loader }, seen, either);
    return await openNew(request, { socket, metadata, program: loader.program }, either);
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

/**
 * Connects to a pod that an earlier program has left.
 *
 * @throws BackendUnavailableError if its session is over, or does not answer; SessionInUseError if another program uses it; the
 * signal's reason.
 */
export async function openLeft(
  { client, source, options, kept }: Pick<PodRequest, "client" | "source" | "options"> & { readonly kept: KeptSession },
  left: LeftPod,
  signal: AbortSignal,
): Promise<RunningPod> {
  let link: PodLink | undefined;
  try {
    const pod = await client.get(left.pod, signal);
    if (!pod) throw new PlaceGone("the pod is gone");
    const why = whyOver(pod, left.uid);
    if (why !== undefined) throw new PlaceGone(why);
    const { metadata } = pod;
    link = await PodLink.open(client, metadata, kept, signal);
    const hasPolicy = (options.network ?? "open") !== "open";
    const entry = { metadata, remove: source.remove, streams: link.streams, link, hasPolicy };
    return await RunningPod.open(client, entry, signal);
  } catch (error) {
    await link?.detach();
    if (error instanceof PlaceGone) throw sessionHasEnded(`in the pod ${left.pod}`, true, error);
    throw error;
  }
}

/** Continues what an exec has begun in a new pod. */
async function openNew(
  { client, source, kept }: PodRequest,
  {
    socket,
    metadata,
    program,
  }: { readonly socket: WebSocket; readonly metadata: Pod["metadata"]; readonly program: Uint8Array },
  signal: AbortSignal,
): Promise<RunningPod> {
  const first = streamsOf(socket);
  try {
    first.stdin.write(program);
    const link = kept && (await PodLink.open(client, metadata, { ...kept, first }, signal));
    const entry = { metadata, remove: source.remove, streams: link?.streams ?? first, link };
    return await RunningPod.open(client, entry, signal);
  } catch (cause) {
    // What began to run there ends with it.
    first.stdin.destroy();
    signal.throwIfAborted();
    const said = cause instanceof Error ? cause.message : String(cause);
    const why = (await whyLost(client, metadata.name)) ?? said;
    throw new BackendUnavailableError(`The pod ${metadata.name} cannot run code: ${why}`, {
      remedy: "The image needs `sh` and Python 3.8 or later. If it has both, call again to create a new pod.",
      cause,
    });
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

function loaderOf({ source, directory, programs, options, kept }: PodRequest): SupervisorLoader {
  const { keeper } = source;
  const searchPath = options.env?.["PATH"];
  const config: SupervisorConfig = {
    directory,
    workspace: workspacePath,
    programs,
    alone: true,
    ...(searchPath === undefined ? {} : { path: searchPath }),
  };
  return kept ? sessionServerLoader(keeper, kept.address.socket, config) : supervisorLoader({ ...config, keeper });
}
