import { z } from "zod";
import { podLabel } from "../pod/pod-manifest.ts";
import type { Pod } from "../pod/pod-state.ts";

/** The fields of a NetworkPolicy that are used here. */
export interface NetworkPolicyObject {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly podSelector: LabelSelector;
    readonly ingress?: readonly unknown[] | undefined;
    readonly egress?: readonly unknown[] | undefined;
  };
}

interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>> | undefined;
  readonly matchExpressions?: readonly Requirement[] | undefined;
}

interface Requirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[] | undefined;
}

const selector: z.ZodType<LabelSelector> = z.object({
  matchLabels: z.record(z.string(), z.string()).optional(),
  matchExpressions: z
    .array(z.object({ key: z.string(), operator: z.string(), values: z.array(z.string()).optional() }))
    .optional(),
});

/** The API's answer with the policies of a namespace. */
export const networkPolicyList: z.ZodType<{ readonly items: readonly NetworkPolicyObject[] }> = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string() }),
      spec: z.object({
        podSelector: selector.default({}),
        ingress: z.array(z.unknown()).optional(),
        egress: z.array(z.unknown()).optional(),
      }),
    }),
  ),
});

/** A policy that denies a pod everything. The cluster deletes it with the pod. */
export function denyAll({ name, uid, labels }: Pod["metadata"]): object {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name, ownerReferences: [{ apiVersion: "v1", kind: "Pod", name, uid }] },
    // A claimed pod's label has the claim's name.
    spec: {
      podSelector: { matchLabels: { [podLabel]: labels?.[podLabel] ?? name } },
      policyTypes: ["Ingress", "Egress"],
    },
  };
}

/** Whether a policy applies to pods with these labels. */
export function restricts({ spec }: NetworkPolicyObject, labels: Readonly<Record<string, string>>): boolean {
  const { matchLabels = {}, matchExpressions = [] } = spec.podSelector;
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((requirement) => meets(labels[requirement.key], requirement))
  );
}

function meets(value: string | undefined, { operator, values = [] }: Requirement): boolean {
  if (operator === "Exists") return value !== undefined;
  if (operator === "DoesNotExist") return value === undefined;
  const isIn = value !== undefined && values.includes(value);
  return operator === "In" ? isIn : !isIn;
}

/** Whether a policy lets anything in or out. */
export function allowsTraffic({ spec }: NetworkPolicyObject): boolean {
  return (spec.ingress?.length ?? 0) > 0 || (spec.egress?.length ?? 0) > 0;
}
