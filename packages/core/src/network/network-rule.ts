import { type HostPattern, parseHostPattern } from "./host-pattern.ts";
import { matchesPath, unclearPath } from "./request-path.ts";

/** A parsed entry of a network policy's list. */
export interface ParsedRule extends HostPattern {
  /** `undefined`: every method. */
  readonly methods: readonly string[] | undefined;
  /** `undefined`: every path. */
  readonly paths: readonly string[] | undefined;
  readonly ca: string | undefined;
}

/** What is wrong with an entry, as a sentence's end after its name, and where. */
export interface EntryProblem {
  readonly problem: string;
  /** The field of a rule; absent for the entry as a whole. */
  readonly field?: string;
}

const fields = ["host", "methods", "paths", "ca"];
const methodName = /^[A-Z][A-Z-]{0,30}$/;

/** Parses an entry of a list of hosts, which may be a host or a `NetworkRule`; it may come from a function of the caller's. */
export function parseNetworkEntry(entry: unknown): ParsedRule | EntryProblem {
  if (typeof entry === "string") return parsed(entry, {});
  if (typeof entry !== "object" || entry === null) {
    return { problem: 'must be a host, or a rule: { host: "api.example.com", methods: ["GET"], paths: ["/v1/**"] }' };
  }
  // A field that is not known would be a restriction that is not kept.
  const unknown = Object.keys(entry).find((name) => !fields.includes(name));
  if (unknown !== undefined) return { problem: `is unknown; a rule has ${fields.join(", ")}`, field: unknown };
  const read = (name: string): unknown => Reflect.get(entry, name);
  const [host, methods, paths, ca] = fields.map(read);
  if (typeof host !== "string") return { problem: "must be a host", field: "host" };
  const list = (value: unknown): value is readonly string[] | undefined =>
    value === undefined ||
    (Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string"));
  if (!list(methods) || methods?.every((each) => methodName.test(each)) === false) {
    return { problem: 'must list methods in capital letters, such as "GET"', field: "methods" };
  }
  if (!list(paths)) return { problem: 'must list paths, such as "/v1/**"', field: "paths" };
  const unclear = paths?.map((each) => unclearPath(each.replaceAll("*", "x"))).find((problem) => problem !== undefined);
  if (unclear !== undefined) {
    return { problem: `must list paths that hosts read in one way only: one ${unclear}`, field: "paths" };
  }
  if (ca !== undefined && (typeof ca !== "string" || !ca.includes("-----BEGIN CERTIFICATE-----"))) {
    return { problem: "must be a PEM certificate", field: "ca" };
  }
  if (ca !== undefined && methods === undefined && paths === undefined) {
    return { problem: "has no effect without `methods` or `paths`: TLS then does not end at the proxy", field: "ca" };
  }
  const rule = parsed(host, { methods, paths, ca });
  return "problem" in rule ? { ...rule, field: "host" } : rule;
}

function parsed(host: string, rest: Partial<Omit<ParsedRule, keyof HostPattern>>): ParsedRule | EntryProblem {
  const pattern = parseHostPattern(host);
  if ("problem" in pattern) return pattern;
  return { ...pattern, methods: rest.methods, paths: rest.paths, ca: rest.ca };
}

/** True if a rule allows only some requests to its hosts, so that they have to be read. */
export function isRestricted({ methods, paths }: ParsedRule): boolean {
  return methods !== undefined || paths !== undefined;
}

/** True if a rule allows a request. @param path - without its query; one of `unclearPath` must have been refused. */
export function permitsRequest({ methods, paths }: ParsedRule, method: string, path: string): boolean {
  if (methods && !methods.includes(method)) return false;
  return !paths || paths.some((pattern) => matchesPath(pattern, path));
}
