import type { NetworkPolicy } from "@fenced/core";
import {
  networkPolicyOption,
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
import {
  checkStateful,
  type StatefulExecutorOptions,
  statefulOptions,
  warmOption,
  type WarmOptions,
} from "@fenced/executor-kit/supervisor";
import { z } from "zod";

/** What a pod asks for and may use, in Kubernetes' quantities: `{ limits: { cpu: "500m", memory: "1Gi" } }`. */
export interface PodResources {
  /** What the scheduler sets aside for it. */
  readonly requests?: Readonly<Record<string, string>>;
  /** What it may use. */
  readonly limits?: Readonly<Record<string, string>>;
}

/** A warm pool to claim pods of. */
export interface WarmPoolOptions {
  /** The name of the SandboxWarmPool. */
  readonly name: string;
}

/** Settings of `KubernetesCommandLineCodeExecutor`; none is required. */
export interface KubernetesExecutorOptions
  extends BaseExecutorOptions, CommandLineExecutorOptions, StatefulExecutorOptions {
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
   * What the code may connect to. `"none"`: only the pod's own loopback; `"open"`: whatever the cluster lets the pod reach;
   * `{ allow: ["pypi.org:443"] }`: only these hosts, through a proxy in this process. Except for `"open"`, a NetworkPolicy cuts
   * the pod off, and starting fails where the cluster does not enforce it. Default: `"open"`.
   */
  readonly network?: NetworkPolicy;
  /**
   * A SandboxWarmPool of agent-sandbox (`extensions.agents.x-k8s.io/v1beta1`) in the namespace, whose pods wait for sessions. Its
   * SandboxTemplate has to be one that `sandboxTemplate` made, and decides what the options about the pod would. Default: none;
   * each session makes a pod of its own.
   */
  readonly warmPool?: WarmPoolOptions;
  /** Seconds after which the cluster ends the pod, whatever happens. Default: 86,400. */
  readonly activeDeadlineSeconds?: number;
  /**
   * Milliseconds that a pod may take until it runs, with the download of its image, or until a claim is served. Default: 300,000;
   * with `warmPool` 30,000.
   */
  readonly startTimeoutMs?: number;
  /**
   * Wait, up to `startTimeoutMs`, where no node has room for the pod, as an autoscaler may add one. Default: false; starting fails
   * as soon as the scheduler says so.
   */
  readonly waitForNodes?: boolean;
  /**
   * Keep a Python interpreter waiting, with modules that it has imported already, and fork Python blocks from it; and one of
   * JavaScript, if Node is there, which becomes the next block. Default: false.
   */
  readonly warm?: false | WarmOptions;
}

const text = z.string().min(1);
/** Options that a claim on a warm pool cannot have. */
const decidedByPool = [
  "image",
  "imagePullPolicy",
  "podTemplate",
  "runtimeClassName",
  "resources",
  "waitForNodes",
] as const;

const podResources: z.ZodType<PodResources> = optionsSchema({
  requests: stringsOption.exactOptional(),
  limits: stringsOption.exactOptional(),
} satisfies OptionSchemas<PodResources>);

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
  network: networkPolicyOption().exactOptional(),
  warmPool: optionsSchema({ name: text } satisfies OptionSchemas<WarmPoolOptions>).exactOptional(),
  activeDeadlineSeconds: wholeNumberOption({ from: 1, unit: "seconds" }).exactOptional(),
  startTimeoutMs: timeLimitOption.exactOptional(),
  waitForNodes: z.boolean().exactOptional(),
  warm: warmOption.exactOptional(),
  ...statefulOptions,
} satisfies OptionSchemas<KubernetesExecutorOptions>).check(checkStateful, ({ value, issues }) => {
  if (!value.warmPool) return;
  for (const name of decidedByPool.filter((each) => value[each] !== undefined)) {
    const message = "belongs in the SandboxTemplate of the warm pool: set it there";
    issues.push({ code: "custom", path: [name], input: value[name], message });
  }
});
