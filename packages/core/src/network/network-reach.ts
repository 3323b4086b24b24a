import type { ExecutorCapabilities } from "../execution/executor-capabilities.ts";
import type { NetworkPolicy } from "./network-policy.ts";

/** A policy as `ExecutorCapabilities.network`; empty if it can change while code runs. */
export function networkReach(policy: NetworkPolicy): Pick<ExecutorCapabilities, "network"> {
  if (typeof policy === "string") return { network: policy };
  return typeof policy.allow === "function" ? {} : { network: policy.allow };
}
