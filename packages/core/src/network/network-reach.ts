import type { ExecutorCapabilities } from "../execution/executor-capabilities.ts";
import type { NetworkPolicy } from "./network-policy.ts";

/** A policy as `ExecutorCapabilities.network`; empty if it can change while code runs. */
export function networkReach(policy: NetworkPolicy): Pick<ExecutorCapabilities, "network"> {
  if (typeof policy === "string") return { network: policy };
  const { allow, deny, onUnknownHost } = policy;
  if (typeof allow === "function" || typeof deny === "function" || onUnknownHost) return {};
  return { network: allow.map((entry) => (typeof entry === "string" ? entry : entry.host)) };
}
