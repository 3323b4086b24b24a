export {
  type AllowedNetwork,
  type NetworkCredential,
  type NetworkDecision,
  type NetworkPolicy,
  type NetworkRule,
  packageIndexes,
} from "@fenced/core";
export { type ConnectionOptions, EgressProxy, type ListeningAddress, type ListenOptions } from "./egress-proxy.ts";
export type { EgressProxyOptions } from "./egress-proxy-options.ts";
