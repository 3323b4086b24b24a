export { canonicalHost, type HostPattern, isAddress, matchesHost, parseHostPattern } from "./host-pattern.ts";
