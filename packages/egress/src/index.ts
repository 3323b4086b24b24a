export {
  type AllowedNetwork,
  type HeaderCredential,
  type NetworkCredential,
  type NetworkDecision,
  type NetworkDenial,
  type NetworkPolicy,
  type NetworkRule,
  type PlaceholderCredential,
  type PlaceholderPart,
  packageIndexes,
  type UpstreamProxy,
} from "@fenced/core";
export { type ConnectionOptions, EgressProxy, type ListeningAddress, type ListenOptions } from "./egress-proxy.ts";
export type { RelayedBytes } from "./destination/traffic.ts";
export type { EgressProxyOptions } from "./egress-proxy-options.ts";
