import type { NetworkDenial } from "@fenced/core";
import { type HostPattern, isAddress, parseAddressRange, parseHostPattern } from "@fenced/core/network";
import * as z from "zod";
import { E2BFailure } from "./e2b-failure.ts";

/** What a client wants of the connections that a sandbox opens. */
export interface EgressRules {
  readonly allowInternetAccess: boolean;
  /** Names, addresses and ranges that stay allowed although they are denied. */
  readonly allowOut: readonly string[];
  /** Addresses and ranges. */
  readonly denyOut: readonly string[];
}

/** See `EgressRules`. */
export const egressRulesSchema: z.ZodType<EgressRules> = z.object({
  allowInternetAccess: z.boolean(),
  allowOut: z.array(z.string()),
  denyOut: z.array(z.string()),
});

/** Entries are read for each change, and compared for each connection that code opens. */
const destinations: z.ZodType<readonly string[] | null | undefined> = z.array(z.string().max(300)).max(1000).nullish();

/** The schemas of the parts of a request that say it. */
interface EgressFields {
  readonly allowOut: typeof destinations;
  readonly denyOut: typeof destinations;
  readonly rules: z.ZodType;
  readonly egressProxy: z.ZodType;
}

/** See `EgressFields`. */
export const egressFields: EgressFields = {
  allowOut: destinations,
  denyOut: destinations,
  rules: z.unknown(),
  egressProxy: z.unknown(),
};

/** A request's rules, before they are checked. */
export interface WantedEgress {
  readonly allow_internet_access?: boolean | undefined;
  readonly allowOut?: readonly string[] | null | undefined;
  readonly denyOut?: readonly string[] | null | undefined;
  readonly rules?: unknown;
  readonly egressProxy?: unknown;
}

/** @throws E2BFailure if a rule cannot be enforced, or has no effect. */
export function egressRules({ rules, egressProxy, ...wanted }: WantedEgress): EgressRules {
  if (isGiven(rules)) {
    throw new E2BFailure(
      501,
      "network.rules: this server does not change requests. Pass the value to the code in `envs`, or ask the server's operator for `credentials` in the template's network policy",
    );
  }
  if (isGiven(egressProxy)) {
    throw new E2BFailure(
      501,
      "network.egressProxy: this server connects through the proxy of its operator, if any: ask for `upstreamProxy` in the template's network policy",
    );
  }
  const { allow_internet_access: allowInternetAccess = true, allowOut, denyOut } = wanted;
  const checked: EgressRules = { allowInternetAccess, allowOut: allowOut ?? [], denyOut: denyOut ?? [] };
  for (const entry of checked.denyOut) {
    if (parseAddressRange(entry)) continue;
    const remedy = 'Names can only be allowed: deny everything with "0.0.0.0/0", and list the others in allowOut';
    throw new E2BFailure(400, `network.denyOut: ${shown(entry)} is not an address or a range. ${remedy}`);
  }
  const names = checked.allowOut.filter((entry) => !parseAddressRange(entry));
  for (const name of names) {
    if (nameOf(name)) continue;
    const what = 'a name, a name below a star ("*.example.com"), an address or a range, without a port';
    throw new E2BFailure(400, `network.allowOut: ${shown(name)} is not ${what}`);
  }
  if (checked.allowOut.length > 0 && !isDenied(checked)) {
    throw new E2BFailure(400, 'network.allowOut: it has no effect if nothing is denied; add denyOut: ["0.0.0.0/0"]');
  }
  if (names.length > 0 && !deniesAll(checked)) {
    const remedy = 'add "0.0.0.0/0" to denyOut';
    throw new E2BFailure(400, `network.allowOut: names need that all other traffic is denied; ${remedy}`);
  }
  return checked;
}

/** Whether something is denied. */
export function isDenied({ allowInternetAccess, denyOut }: EgressRules): boolean {
  return !allowInternetAccess || denyOut.length > 0;
}

/** Whether everything is denied but what is allowed. */
export function deniesAll({ allowInternetAccess, denyOut }: EgressRules): boolean {
  return !allowInternetAccess || denyOut.some(isEverything);
}

/** The rules as a network policy denies. E2B's sandboxes only know IPv4, so that all of it is everything. */
export function denialsOf(rules: EgressRules): readonly NetworkDenial[] {
  if (!isDenied(rules)) return [];
  const everything = ["0.0.0.0/0", "::/0"];
  const addresses = deniesAll(rules) ? everything : rules.denyOut;
  return [{ addresses, except: rules.allowOut.flatMap((entry) => (isEverything(entry) ? everything : [entry])) }];
}

/** A name that can be allowed. */
export function nameOf(entry: string): HostPattern | undefined {
  const pattern = parseHostPattern(entry);
  return "host" in pattern && pattern.port === undefined && !isAddress(pattern.host) ? pattern : undefined;
}

/** Whether a client wants something. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && !(typeof value === "object" && Object.keys(value).length === 0);
}

function isEverything(entry: string): boolean {
  const range = parseAddressRange(entry);
  return range?.family === 4 && range.bits === 0;
}

/** An entry as a message has it. */
function shown(entry: string): string {
  return JSON.stringify(entry.length > 100 ? `${entry.slice(0, 100)}…` : entry);
}
