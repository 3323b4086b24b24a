import { checkOptions } from "@fenced/core/options";
import { kubernetesExecutorOptions, type KubernetesExecutorOptions } from "../kubernetes-executor-options.ts";
import { poolManifest } from "../pod/pod-manifest.ts";

/** The options of an executor that its pool's template decides. */
export type SandboxTemplateOptions = Pick<
  KubernetesExecutorOptions,
  "image" | "imagePullPolicy" | "resources" | "runtimeClassName" | "podTemplate" | "labels" | "network"
>;

/**
 * The SandboxTemplate of agent-sandbox for a warm pool whose pods executors can claim: the same hardened pod that executors
 * create without a pool. Apply it together with a SandboxWarmPool that names it. With a `network` other than `"open"`, a policy
 * that agent-sandbox creates cuts its pods off from every network.
 *
 * @throws InvalidInputError if an option is unknown or wrong.
 *
 * @example
 * writeFileSync("template.json", JSON.stringify(sandboxTemplate("python", { image: "python:3-slim" })));
 */
export function sandboxTemplate(name: string, options: SandboxTemplateOptions = {}): Record<string, unknown> {
  const checked = checkOptions(kubernetesExecutorOptions, options, "sandboxTemplate");
  const { metadata, spec } = poolManifest(checked);
  const isOpen = (checked.network ?? "open") === "open";
  return {
    apiVersion: "extensions.agents.x-k8s.io/v1beta1",
    kind: "SandboxTemplate",
    metadata: { name },
    spec: {
      podTemplate: { metadata, spec },
      // An empty policy denies everything; without any, agent-sandbox would let pods talk to the Internet.
      ...(isOpen
        ? { networkPolicyManagement: "Unmanaged" }
        : { networkPolicyManagement: "Managed", networkPolicy: {} }),
    },
  };
}
