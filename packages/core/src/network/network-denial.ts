import { type AddressRange, isInRange, parseAddressRange } from "./address-range.ts";
import { type HostPattern, isAddress, matchesHost, parseHostPattern } from "./host-pattern.ts";
import type { EntryProblem } from "./network-rule.ts";

/** A parsed entry of a network policy's `deny`. */
export interface ParsedDenial {
  readonly ranges: readonly AddressRange[];
  /** All addresses of both versions are in these ranges, without exceptions among them: a name alone then decides. */
  readonly isTotal: boolean;
  readonly exceptRanges: readonly AddressRange[];
  readonly exceptNames: readonly HostPattern[];
}

const fields = ["addresses", "except"];

/** Parses an entry, which may come from a function of the caller's. */
export function parseDenyEntry(entry: unknown): ParsedDenial | EntryProblem {
  if (typeof entry === "string") return parseDenyEntry({ addresses: [entry] });
  if (typeof entry !== "object" || entry === null) {
    return { problem: 'must be an address, a range, or { addresses: ["192.0.2.0/24"], except: ["192.0.2.7"] }' };
  }
  const unknown = Object.keys(entry).find((name) => !fields.includes(name));
  if (unknown !== undefined) return { problem: `is unknown; an entry has ${fields.join(", ")}`, field: unknown };
  const [addresses, except = []]: unknown[] = fields.map((name): unknown => Reflect.get(entry, name));
  if (!isList(addresses)) return { problem: "must be a list of addresses and ranges", field: "addresses" };
  if (!isList(except)) return { problem: "must be a list of hosts, addresses and ranges", field: "except" };
  const ranges: AddressRange[] = [];
  for (const text of addresses) {
    const range = parseAddressRange(text);
    if (!range) return { problem: 'must list addresses and ranges, such as "192.0.2.0/24"', field: "addresses" };
    ranges.push(range);
  }
  const [exceptRanges, exceptNames]: [AddressRange[], HostPattern[]] = [[], []];
  for (const text of except) {
    const range = parseAddressRange(text);
    const name = range ? undefined : parseHostPattern(text);
    if (range) exceptRanges.push(range);
    else if (name && "host" in name && !isAddress(name.host)) exceptNames.push(name);
    else return { problem: "must list hosts, addresses without a port and ranges", field: "except" };
  }
  const isTotal = exceptRanges.length === 0 && ([4, 6] as const).every((family) => coversAll(ranges, family));
  return { ranges, isTotal, exceptRanges, exceptNames };
}

/** Whether a name is an exception, at which no address is denied. A star does not cover addresses. */
export function isExceptedName({ exceptNames }: ParsedDenial, host: string, port: number): boolean {
  return !isAddress(host) && exceptNames.some((pattern) => matchesHost(pattern, host, port));
}

/** Whether an address in canonical form is denied, unless a name that leads to it is an exception. */
export function isDeniedAddress({ ranges, exceptRanges }: ParsedDenial, address: string): boolean {
  const contains = (range: AddressRange): boolean => isInRange(range, address);
  return ranges.some(contains) && !exceptRanges.some(contains);
}

function coversAll(ranges: readonly AddressRange[], family: 4 | 6): boolean {
  return ranges.some((range) => range.family === family && range.bits === 0);
}

function isList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}
