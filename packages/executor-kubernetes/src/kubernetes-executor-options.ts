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
  type KeepAliveOptions,
  keepAliveOptions,
} from "@fenced/executor-kit";
import {
  checkStateful,
  type StatefulExecutorOptions,
  statefulOptions,
  warmOption,
  type WarmOptions,
} from "@fenced/executor-kit/supervisor";
import { z } from "zod";

/** What a pod requests and may use, in Kubernetes quantities: `{ limits: { cpu: "500m", memory: "1Gi" } }`. */
export interface PodResources {
  /** What the scheduler reserves for it. */
  readonly requests?: Readonly<Record<string, string>>;
  /** What it may use. */
  readonly limits?: Readonly<Record<string, string>>;
}

/** A warm pool to claim pods from. */
export interface WarmPoolOptions {
  /** The name of the SandboxWarmPool. */
  readonly name: string;
}

/** Options of `KubernetesCommandLineCodeExecutor`; all are optional. */
export interface KubernetesExecutorOptions
  extends BaseExecutorOptions, CommandLineExecutorOptions, KeepAliveOptions, StatefulExecutorOptions {
  /** The image; needs `sh` and Python 3.8 or later. Default: `python:3-slim`. */
  readonly image?: string | undefined;
  /** When the node pulls the image. Default: the cluster's rule: `"Always"` for `:latest`, otherwise `"IfNotPresent"`. */
  readonly imagePullPolicy?: "Always" | "IfNotPresent" | "Never" | undefined;
  /** The namespace, which must exist. Default: the context's, otherwise `default`. */
  readonly namespace?: string | undefined;
  /** The context in the kubeconfig. Default: its current one. */
  readonly context?: string | undefined;
  /**
   * A kubeconfig file. Default: the files in the variable `KUBECONFIG`, otherwise `~/.kube/config`, otherwise the service account
   * of the pod that this program runs in.
   */
  readonly kubeconfig?: string | undefined;
  /**
   * Additions to the pod's manifest: `{ spec: { nodeSelector: { pool: "code" } } }`. Objects are merged with the hardened pod,
   * lists by the names of their items; blocks run in the container `code`. Your values take precedence, so they can undo the
   * hardening. Default: none.
   */
  readonly podTemplate?: Readonly<Record<string, unknown>> | undefined;
  /** The runtime class, such as `gvisor`. Default: the cluster's. */
  readonly runtimeClassName?: string | undefined;
  /**
   * Replaces the default: requests of 0.1 CPU and 128 MiB, limits of 1 CPU, 1 GiB of memory and 2 GiB of disk for workspace and
   * `/tmp` together.
   */
  readonly resources?: PodResources | undefined;
  /** Labels of the pod, to find it by: `kubectl get pods -l tenant=42`. Default: Fenced's own. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /**
   * What the code may connect to. `"none"`: only the pod's own loopback; `"open"`: whatever the cluster lets the pod reach;
   * `{ allow: ["pypi.org:443"] }`: only these hosts, through a proxy in this process. Unless it is `"open"`, a NetworkPolicy cuts
   * the pod off, and starting fails where the cluster does not enforce it. Default: `"open"`.
   */
  readonly network?: NetworkPolicy | undefined;
  /**
   * A SandboxWarmPool of agent-sandbox (`extensions.agents.x-k8s.io/v1beta1`) in the namespace, whose pods wait for sessions. Its
   * SandboxTemplate must come from `sandboxTemplate`, and replaces the options about the pod. Default: none; each session creates
   * its own pod.
   */
  readonly warmPool?: WarmPoolOptions | undefined;
  /** Seconds after which the cluster ends the pod, whatever happens. Default: 86,400. */
  readonly activeDeadlineSeconds?: number | undefined;
  /**
   * Time limit in milliseconds for a pod to start running, including the download of its image, or for a claim to be served.
   * `Infinity`: no limit. Default: 300,000; with `warmPool`, 30,000.
   */
  readonly startTimeoutMs?: number | undefined;
  /**
   * Wait up to `startTimeoutMs` if no node has room for the pod, since an autoscaler may add one. Default: false; starting fails
   * as soon as the scheduler reports it.
   */
  readonly waitForNodes?: boolean | undefined;
  /**
   * Keep a Python interpreter waiting, with modules already imported, and fork Python blocks from it; also keep a Node process,
   * if Node is installed, that becomes the next JavaScript block. Default: false.
   */
  readonly warm?: false | WarmOptions | undefined;
}

const text = z.string().min(1);
/** Options that do not apply to claims on a warm pool. */
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
  ...keepAliveOptions,
  ...statefulOptions,
} satisfies OptionSchemas<KubernetesExecutorOptions>).check(checkStateful, ({ value, issues }) => {
  if (!value.warmPool) return;
  for (const name of decidedByPool.filter((each) => value[each] !== undefined)) {
    const message = "belongs in the SandboxTemplate of the warm pool: set it there";
    issues.push({ code: "custom", path: [name], input: value[name], message });
  }
});
