export { canonicalHost, type HostPattern, isAddress, matchesHost, parseHostPattern } from "./host-pattern.ts";
export { networkReach } from "./network-reach.ts";
