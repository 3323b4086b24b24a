import { readFileSync } from "node:fs";
import { pythonCommand } from "@fenced/executor-kit/supervisor";
import type { KubernetesExecutorOptions } from "../kubernetes-executor-options.ts";

const keeperProgram: string = readFileSync(new URL("./keeper.py", import.meta.url), "utf8");

/** The work directory's path in the container. */
export const workspacePath = "/workspace";
/** The container that blocks run in. */
export const containerName = "code";
/** A label of all of our pods. */
export const managedLabel = "app.kubernetes.io/managed-by";
export const managedBy = "fenced";
/** A label of all of our pods: the id of the executor that created the pod. */
export const ownerLabel = "fenced.dev/executor";
/** A label of all of our pods: the pod's own name, so that a NetworkPolicy can select it alone. */
export const podLabel = "fenced.dev/pod";
/** The abstract socket at which the keepers of a warm pool's pods wait. */
export const poolKeeper = "fenced-keeper";
/** The default image. */
export const defaultImage = "python:3-slim";
/** An annotation of all of our pods: the milliseconds after which nobody waits any longer for it to run. */
export const startTimeoutAnnotation = "fenced.dev/start-timeout-ms";
/** The default start timeout, in milliseconds. */
export const defaultStartMs = 300_000;

/** Seconds without a sign of life of this program after which a pod ends. */
const keeperPatience = 60;
/** Seconds for which a pod that has ended is kept, so that its program can learn why. */
const endedSeconds = 10;
/** Seconds that a Job may take beyond the time limits for the start and the life of its pod. */
const jobSlackSeconds = 60;
/** The longest start that counts, in seconds, since it may have no limit. */
const longestStart = 86_400;
/** An arbitrary user other than root; the image need not have an account for it. */
const nobody = 65_532;
export const defaultActiveSeconds = 86_400;
/**
 * The file for the container's termination message. It is on the node, writable for everyone and not limited in size, so it is
 * in `/root`, to which code has no access.
 */
const terminationFile = "/root/.fenced-end";

const defaultResources = {
  requests: { cpu: "100m", memory: "128Mi" },
  limits: { cpu: "1", memory: "1Gi", "ephemeral-storage": "2Gi" },
} as const;

/** A pod, in the form of the API. */
export interface PodManifest {
  readonly [name: string]: unknown;
}

/** What a session's pod is named after. */
export interface PodIdentity {
  /** The name of the pod, or of what requests it. */
  readonly name: string;
  /** The executor's id. */
  readonly owner: string;
}

/** The pod for these options: hardened, unless its template says otherwise. */
export function podManifest(options: KubernetesExecutorOptions, pod: PodIdentity): PodManifest {
  const { labels, podTemplate = {}, activeDeadlineSeconds = defaultActiveSeconds, runtimeClassName } = options;
  // Pods with `hostNetwork` share the node's abstract sockets, so each keeper is named after its pod.
  const hardened = merge(podDefaults(options, { name: pod.name }), podTemplate);
  const spec = objectOf(hardened["spec"]);
  const metadata = objectOf(hardened["metadata"]);
  const ours = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: pod.name,
      labels: { ...labels, [managedLabel]: managedBy, [ownerLabel]: pod.owner, [podLabel]: pod.name },
      annotations: { [startTimeoutAnnotation]: String(options.startTimeoutMs ?? defaultStartMs) },
    },
    spec: {
      restartPolicy: "Never",
      activeDeadlineSeconds,
      ...(runtimeClassName === undefined ? {} : { runtimeClassName }),
    },
  };
  return merge({ ...hardened, metadata: without(metadata, ["name", "generateName", "namespace"]), spec }, ours);
}

/**
 * A Job for one pod with these options: when that has ended, however it has, the cluster deletes both, also if no program is left
 * that could.
 */
export function jobManifest(options: KubernetesExecutorOptions, pod: PodIdentity): PodManifest {
  const { activeDeadlineSeconds = defaultActiveSeconds, startTimeoutMs = defaultStartMs } = options;
  const { metadata, spec } = podManifest(options, pod);
  const { name, ...template } = objectOf(metadata);
  const startSeconds = Math.min(Math.ceil(startTimeoutMs / 1000), longestStart);
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name, labels: template["labels"] },
    spec: {
      // One pod, whatever happens to it.
      backoffLimit: 0,
      ttlSecondsAfterFinished: endedSeconds,
      // For a pod that never starts; one that runs has its own limit.
      activeDeadlineSeconds: startSeconds + activeDeadlineSeconds + jobSlackSeconds,
      template: { metadata: template, spec },
    },
  };
}

/** The pods of a warm pool with these options; nothing connects to them until they are claimed. */
export function poolManifest(options: KubernetesExecutorOptions): PodManifest {
  const { labels = {}, podTemplate = {}, runtimeClassName } = options;
  const hardened = merge(podDefaults(options, { name: poolKeeper, waits: true }), podTemplate);
  const metadata = objectOf(hardened["metadata"]);
  const ours = { restartPolicy: "Never", ...(runtimeClassName === undefined ? {} : { runtimeClassName }) };
  return {
    metadata: { ...metadata, labels: { ...labels, ...objectOf(metadata["labels"]) } },
    spec: merge(objectOf(hardened["spec"]), ours),
  };
}

/** The pod's main process. */
interface Keeper {
  /** The abstract socket at which it waits for a supervisor. */
  readonly name: string;
  /** Whether it waits without a time limit. */
  readonly waits?: boolean;
}

function podDefaults(options: KubernetesExecutorOptions, keeper: Keeper): PodManifest {
  return {
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      hostNetwork: false,
      terminationGracePeriodSeconds: 1,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: nobody,
        runAsGroup: nobody,
        fsGroup: nobody,
        seccompProfile: { type: "RuntimeDefault" },
      },
      containers: [codeContainer(options, keeper)],
      volumes: [
        { name: "workspace", emptyDir: {} },
        { name: "tmp", emptyDir: {} },
        // It counts towards the pod's memory. A node's own `/dev/shm` has 64 MiB, and programs that use more end by SIGBUS.
        { name: "shm", emptyDir: { medium: "Memory" } },
      ],
    },
  };
}

function codeContainer(
  { image = defaultImage, imagePullPolicy, resources = defaultResources }: KubernetesExecutorOptions,
  { name, waits = false }: Keeper,
): PodManifest {
  return {
    name: containerName,
    image,
    ...(imagePullPolicy === undefined ? {} : { imagePullPolicy }),
    command: [...pythonCommand(keeperProgram), name, String(keeperPatience), ...(waits ? ["waits"] : [])],
    terminationMessagePath: terminationFile,
    workingDir: workspacePath,
    resources,
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      privileged: false,
      capabilities: { drop: ["ALL"] },
    },
    volumeMounts: [
      { name: "workspace", mountPath: workspacePath },
      { name: "tmp", mountPath: "/tmp" },
      { name: "shm", mountPath: "/dev/shm" },
    ],
  };
}

/** The message for a block that ran out of memory. */
export function memorySentence({ resources, warmPool }: KubernetesExecutorOptions): string {
  const limit = resources === undefined ? "1Gi" : resources.limits?.["memory"];
  if (warmPool) return outOfMemory("its pod ran out of memory");
  return outOfMemory(
    limit === undefined ? "its node ran out of memory" : `its pod ran out of memory (limit: ${limit})`,
  );
}

function outOfMemory(why: string): string {
  return `\nThe block was killed because ${why}. Process less data at a time.\n`;
}

/**
 * Merges a template into a pod: objects are merged, as are lists of named items, by their names; other lists are replaced. The
 * template's values take precedence.
 */
function merge(base: PodManifest, over: PodManifest): PodManifest {
  const merged: Record<string, unknown> = { ...base };
  for (const [name, value] of Object.entries(over)) merged[name] = mergeValue(merged[name], value);
  return merged;
}

function mergeValue(base: unknown, over: unknown): unknown {
  if (isObject(base) && isObject(over)) return merge(base, over);
  const [known, added] = [objectsOf(base), objectsOf(over)];
  const key = ["mountPath", "name"].find((each) =>
    [...known, ...added].every((item) => typeof item[each] === "string"),
  );
  if (known.length === 0 || added.length === 0 || key === undefined) return over;
  const merged = new Map(known.map((item) => [item[key], item]));
  for (const item of added) merged.set(item[key], merge(merged.get(item[key]) ?? {}, item));
  return [...merged.values()];
}

/** The items of a list of objects; none if it is anything else. */
function objectsOf(list: unknown): PodManifest[] {
  return Array.isArray(list) && list.every(isObject) ? list : [];
}

function isObject(value: unknown): value is PodManifest {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function objectOf(value: unknown): PodManifest {
  return isObject(value) ? value : {};
}

function without(object: PodManifest, names: readonly string[]): PodManifest {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}
