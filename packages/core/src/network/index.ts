export { type AddressRange, isInRange, parseAddressRange } from "./address-range.ts";
export { canonicalHost, type HostPattern, isAddress, matchesHost, parseHostPattern } from "./host-pattern.ts";
export { isDeniedAddress, isExceptedName, type ParsedDenial, parseDenyEntry } from "./network-denial.ts";
export { networkReach } from "./network-reach.ts";
export { type EntryProblem, isRestricted, type ParsedRule, parseNetworkEntry, permitsRequest } from "./network-rule.ts";
export { unclearPath } from "./request-path.ts";
