import { z } from "zod";
import { containerName } from "./pod-manifest.ts";

/** The fields of a pod that are used here. */
export interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly uid?: string | undefined;
    readonly creationTimestamp?: string | undefined;
    readonly deletionTimestamp?: string | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
    readonly labels?: Readonly<Record<string, string>> | undefined;
    readonly ownerReferences?: readonly { readonly kind: string; readonly name: string }[] | undefined;
  };
  readonly spec: { readonly nodeName?: string | undefined };
  readonly status: {
    readonly phase?: string | undefined;
    readonly reason?: string | undefined;
    readonly message?: string | undefined;
    readonly conditions: readonly PodCondition[];
    readonly containerStatuses: readonly { readonly name: string; readonly state: ContainerState }[];
  };
}

interface PodCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}

interface Explained {
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
}

interface ContainerState {
  readonly running?: unknown;
  readonly waiting?: Explained | undefined;
  readonly terminated?: (Explained & { readonly exitCode?: number | undefined }) | undefined;
}

const text = z.string().optional();
const explained = { reason: text, message: text };
const condition = z.object({ type: z.string(), status: z.string(), ...explained });
const containerState: z.ZodType<ContainerState> = z.object({
  running: z.unknown().optional(),
  waiting: z.object(explained).optional(),
  terminated: z.object({ ...explained, exitCode: z.number().optional() }).optional(),
});
const podSchema: z.ZodType<Pod> = z.object({
  metadata: z.object({
    name: z.string(),
    uid: text,
    creationTimestamp: text,
    deletionTimestamp: text,
    annotations: z.record(z.string(), z.string()).optional(),
    labels: z.record(z.string(), z.string()).optional(),
    ownerReferences: z.array(z.object({ kind: z.string(), name: z.string() })).optional(),
  }),
  spec: z.object({ nodeName: text }).default({}),
  status: z
    .object({
      phase: text,
      ...explained,
      conditions: z.array(condition).default([]),
      containerStatuses: z.array(z.object({ name: z.string(), state: containerState.default({}) })).default([]),
    })
    .default({ conditions: [], containerStatuses: [] }),
});

/** @returns `undefined` if it is not a pod. */
export function readPod(body: unknown): Pod | undefined {
  return podSchema.safeParse(body).data;
}

/** How close a pod is to running blocks. */
export type PodProgress =
  | { readonly state: "running" }
  | { readonly state: "waiting"; readonly for: string }
  | { readonly state: "failed"; readonly why: string; readonly remedy: string };

const imageRemedy =
  "Check `image` and that the nodes can pull it; a private registry needs `podTemplate: { spec: { imagePullSecrets: [{ name }] } }`.";
const roomRemedy =
  "Request less in `resources`, change `podTemplate` (nodeSelector, tolerations), or set `waitForNodes: true` where an autoscaler adds nodes.";
const startRemedy =
  "Check what the container reports: kubectl describe pod. The image needs `sh` and Python 3.8 or later.";

/** A pod that does not exist any more, or not for long. */
export const gone: Extract<PodProgress, { readonly state: "failed" }> = {
  state: "failed",
  why: "something deleted it",
  remedy: "Check what deletes pods in the namespace.",
};

/** Reads from a pod's status whether blocks can run in it, now or ever. */
export function progressOf({ metadata, status }: Pod, waitForNodes: boolean): PodProgress {
  const { phase, reason, message, conditions, containerStatuses } = status;
  const { running, waiting, terminated } = containerStatuses.find(({ name }) => name === containerName)?.state ?? {};
  if (running !== undefined) return { state: "running" };
  if (metadata.deletionTimestamp !== undefined) return gone;
  if (terminated || phase === "Failed" || phase === "Succeeded") {
    const why = [reason, terminated?.reason, message ?? terminated?.message].filter(Boolean).join(": ");
    return { state: "failed", why: `it ended immediately (${why || phase})`, remedy: startRemedy };
  }
  if (waiting?.reason !== undefined) return waitingProgress(waiting.reason, waiting.message);
  const scheduled = conditions.find(({ type }) => type === "PodScheduled");
  if (scheduled?.reason === "Unschedulable" && !waitForNodes) {
    return { state: "failed", why: `no node has room for it: ${scheduled.message ?? ""}`, remedy: roomRemedy };
  }
  return {
    state: "waiting",
    for: scheduled?.status === "True" ? "its node" : `a node: ${scheduled?.message ?? "not scheduled yet"}`,
  };
}

/** Whether the node has begun to create the pod's container. */
export function isBeingMade({ status }: Pod): boolean {
  const { state } = status.containerStatuses.find(({ name }) => name === containerName) ?? {};
  return state?.waiting?.reason === "ContainerCreating";
}

function waitingProgress(reason: string, message = ""): PodProgress {
  const why = message === "" ? reason : `${reason}: ${message}`;
  if (reason === "ImagePullBackOff" || reason === "ErrImageNeverPull" || reason === "InvalidImageName") {
    return { state: "failed", why: `its image could not be pulled (${why})`, remedy: imageRemedy };
  }
  if (
    ["CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"].includes(reason)
  ) {
    return { state: "failed", why: `its container could not be started (${why})`, remedy: startRemedy };
  }
  return { state: "waiting", for: why };
}

/**
 * Why a session cannot be in a pod any longer; `undefined` if it may be. A node that does not answer may come back, with the pod.
 *
 * @param uid - the one that the pod must have; another one has taken its name.
 */
export function whyOver(pod: Pod | undefined, uid: string | undefined): string | undefined {
  if (!pod || (uid !== undefined && pod.metadata.uid !== uid)) return gone.why;
  const { phase, containerStatuses } = pod.status;
  const { terminated } = containerStatuses.find(({ name }) => name === containerName)?.state ?? {};
  const isOver = terminated !== undefined || phase === "Failed" || phase === "Succeeded";
  return isOver || pod.metadata.deletionTimestamp !== undefined ? whyEnded(pod) : undefined;
}

/** Why blocks cannot run in a pod that they ran in; `undefined` if the API sees nothing wrong with it. */
export function whyEnded(pod: Pod | undefined): string | undefined {
  if (!pod) return gone.why;
  const { metadata, status, spec } = pod;
  const { phase, reason, message, conditions, containerStatuses } = status;
  const said = (words?: string): string => (words === undefined || words === "" ? "" : ` (${words})`);
  if (reason === "Evicted") return `the node evicted it${said(message)}`;
  if (reason === "DeadlineExceeded") return "its `activeDeadlineSeconds` have passed";
  const { terminated } = containerStatuses.find(({ name }) => name === containerName)?.state ?? {};
  if (terminated?.reason === "OOMKilled") return "it ran out of memory";
  const disrupted = conditions.find(({ type, status: value }) => type === "DisruptionTarget" && value === "True");
  if (disrupted) return `the cluster removed it: ${disrupted.reason ?? ""}${said(disrupted.message)}`;
  const ready = conditions.find(({ type }) => type === "Ready");
  if (reason === "NodeLost" || ready?.reason === "NodeNotReady") {
    return `its node ${spec.nodeName ?? ""} does not answer`;
  }
  if (metadata.deletionTimestamp !== undefined) return gone.why;
  if (terminated) {
    const { exitCode } = terminated;
    return `its container ended${exitCode === undefined ? "" : ` with exit code ${exitCode}`}${said(terminated.message ?? reason)}`;
  }
  if (phase === "Failed" || phase === "Succeeded") return `it ended${said(message ?? reason)}`;
  return undefined;
}
