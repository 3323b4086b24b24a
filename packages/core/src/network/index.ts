export { canonicalHost, type HostPattern, isAddress, matchesHost, parseHostPattern } from "./host-pattern.ts";
export { networkReach } from "./network-reach.ts";
export { type EntryProblem, isRestricted, type ParsedRule, parseNetworkEntry, permitsRequest } from "./network-rule.ts";
export { unclearPath } from "./request-path.ts";
