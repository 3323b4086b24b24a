import type { NetworkPolicy } from "@fenced/core";
import {
  optionsSchema,
  stringsOption,
  timeLimitOption,
  wholeNumberOption,
  type OptionSchemas,
} from "@fenced/core/options";
import {
  baseExecutorConfig,
  commandLineExecutorConfig,
  type BaseExecutorOptions,
  type CommandLineExecutorOptions,
} from "@fenced/executor-kit";
import { z } from "zod";

/** What a pod asks for and may use, in Kubernetes' quantities: `{ limits: { cpu: "500m", memory: "1Gi" } }`. */
export interface PodResources {
  /** What the scheduler sets aside for it. */
  readonly requests?: Readonly<Record<string, string>>;
  /** What it may use. */
  readonly limits?: Readonly<Record<string, string>>;
}

/** Settings of the interpreter that waits; none is required. */
export interface WarmOptions {
  /** Modules to import in it: `["numpy", "pandas"]`. One that cannot be imported is left to the blocks. Default: none. */
  readonly preload?: readonly string[];
}

/** Settings of `KubernetesCommandLineCodeExecutor`; none is required. */
export interface KubernetesExecutorOptions extends BaseExecutorOptions, CommandLineExecutorOptions {
  /** The image; needs `sh` and Python 3.8 or later. Default: `python:3-slim`. */
  readonly image?: string;
  /** When the node downloads it. Default: the cluster's own rule, which is `"Always"` for `:latest`, else `"IfNotPresent"`. */
  readonly imagePullPolicy?: "Always" | "IfNotPresent" | "Never";
  /** The namespace, which must exist. Default: that of the context, else `default`. */
  readonly namespace?: string;
  /** The context in the kubeconfig. Default: its current one. */
  readonly context?: string;
  /**
   * A kubeconfig file. Default: the files that the variable `KUBECONFIG` names, else `~/.kube/config`, else the service account of
   * the pod that this program runs in.
   */
  readonly kubeconfig?: string;
  /**
   * More of the pod, as in a manifest: `{ spec: { nodeSelector: { pool: "code" } } }`. Objects are merged with the hardened pod, and
   * lists by the names of what is in them; blocks run in the container `code`. What you set here counts, so it can undo the
   * hardening. Default: nothing.
   */
  readonly podTemplate?: Readonly<Record<string, unknown>>;
  /** The runtime class, such as `gvisor`. Default: the cluster's. */
  readonly runtimeClassName?: string;
  /**
   * Replaces the default: requests of 0.1 CPU and 128 MiB, limits of 1 CPU, 1 GiB of memory and 2 GiB of disk for workspace and
   * `/tmp` together.
   */
  readonly resources?: PodResources;
  /** Labels of the pod, to find it by: `kubectl get pods -l tenant=42`. Default: Fenced's own. */
  readonly labels?: Readonly<Record<string, string>>;
  /**
   * `"open"`: the code talks to whatever the pod's network reaches. Nothing else is supported yet: give the namespace a
   * NetworkPolicy. Default: `"open"`.
   */
  readonly network?: NetworkPolicy;
  /** Seconds after which the cluster ends the pod, whatever happens. Default: 86,400. */
  readonly activeDeadlineSeconds?: number;
  /** Milliseconds that a pod may take until it runs, with the download of its image. Default: 300,000. */
  readonly startTimeoutMs?: number;
  /**
   * Wait, up to `startTimeoutMs`, where no node has room for the pod, as an autoscaler may add one. Default: false; starting fails
   * as soon as the scheduler says so.
   */
  readonly waitForNodes?: boolean;
  /**
   * Keep a Python interpreter waiting, with modules that it has imported already, and fork Python blocks from it. Default: false.
   */
  readonly warm?: false | WarmOptions;
}

const text = z.string().min(1);

const podResources: z.ZodType<PodResources> = optionsSchema({
  requests: stringsOption.exactOptional(),
  limits: stringsOption.exactOptional(),
} satisfies OptionSchemas<PodResources>);

const warmOptions: z.ZodType<WarmOptions> = optionsSchema({
  preload: z
    .array(
      z.string().regex(/^[\p{L}_][\p{L}\p{N}_]*(\.[\p{L}_][\p{L}\p{N}_]*)*$/u, "must be the name of a Python module"),
    )
    .exactOptional(),
} satisfies OptionSchemas<WarmOptions>);

const openNetwork: z.ZodType<NetworkPolicy> = z.literal("open", {
  error:
    'must be "open": what a pod reaches is up to the cluster. Apply a NetworkPolicy to the namespace; the README of @fenced/executor-kubernetes has one',
});

/** Checks the options, and the executor's config in a component model. */
export const kubernetesExecutorOptions: z.ZodType<KubernetesExecutorOptions> = optionsSchema({
  ...baseExecutorConfig,
  ...commandLineExecutorConfig,
  image: text.exactOptional(),
  imagePullPolicy: z.enum(["Always", "IfNotPresent", "Never"]).exactOptional(),
  namespace: text.exactOptional(),
  context: text.exactOptional(),
  kubeconfig: text.exactOptional(),
  podTemplate: z.record(z.string(), z.json()).exactOptional(),
  runtimeClassName: text.exactOptional(),
  resources: podResources.exactOptional(),
  labels: stringsOption.exactOptional(),
  network: openNetwork.exactOptional(),
  activeDeadlineSeconds: wholeNumberOption({ from: 1, unit: "seconds" }).exactOptional(),
  startTimeoutMs: timeLimitOption.exactOptional(),
  waitForNodes: z.boolean().exactOptional(),
  warm: z.union([z.literal(false), warmOptions]).exactOptional(),
} satisfies OptionSchemas<KubernetesExecutorOptions>);
