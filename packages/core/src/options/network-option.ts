import * as z from "zod";
import { canonicalHost, type HostPattern, matchesHost, parseHostPattern } from "../network/host-pattern.ts";
import { parseDenyEntry } from "../network/network-denial.ts";
import type {
  AllowedNetwork,
  NetworkDecision,
  NetworkDenial,
  NetworkPolicy,
  NetworkRule,
} from "../network/network-policy.ts";
import { type EntryProblem, parseNetworkEntry } from "../network/network-rule.ts";
import { type OptionSchemas, optionsSchema, callbackOption } from "./check-options.ts";
import { credentialOption } from "./credential-option.ts";
import { upstreamProxyOption } from "./upstream-proxy-option.ts";

/** The schema of an entry of a list: a text, or an object. */
function entryOption<T>(what: string, parse: (entry: unknown) => object | EntryProblem): z.ZodType<string | T> {
  return z
    .custom<string | T>(
      (value) => typeof value === "string" || (typeof value === "object" && value !== null),
      `must be ${what}`,
    )
    .check(({ value, issues }) => {
      const parsedEntry = parse(value);
      if (!("problem" in parsedEntry)) return;
      const path = parsedEntry.field === undefined ? [] : [parsedEntry.field];
      issues.push({ code: "custom", path, input: value, message: parsedEntry.problem });
    });
}

const allowEntry = entryOption<NetworkRule>("a host or a rule", parseNetworkEntry);
const denyEntry = entryOption<NetworkDenial>("an address, a range or a denial", parseDenyEntry);

/** The schemas of `AllowedNetwork`. */
export const allowedNetworkOptions: OptionSchemas<AllowedNetwork> = {
  allow: z.union(
    [z.array(allowEntry), callbackOption<() => readonly (string | NetworkRule)[]>()],
    "must be a list of hosts, or a function that returns one",
  ),
  deny: z
    .union(
      [z.array(denyEntry), callbackOption<() => readonly (string | NetworkDenial)[]>()],
      "must be a list of addresses, or a function that returns one",
    )
    .exactOptional(),
  credentials: z.array(credentialOption).exactOptional(),
  upstreamProxy: upstreamProxyOption.exactOptional(),
  resolve: callbackOption<(host: string, signal: AbortSignal) => Promise<readonly string[]>>().exactOptional(),
  onUnknownHost: callbackOption<NonNullable<AllowedNetwork["onUnknownHost"]>>().exactOptional(),
  onRequest: callbackOption<(decision: NetworkDecision) => void>().exactOptional(),
};

/**
 * Reports a mismatch between a policy's parts: a credential for a host that the code may not connect to, or two placeholders that
 * could be meant by the same text.
 */
export function checkCredentials({ value, issues }: z.core.ParsePayload<AllowedNetwork>): void {
  const credentials = value.credentials ?? [];
  for (const [index, { host, placeholder }] of credentials.entries()) {
    if (placeholder === undefined) continue;
    const place = JSON.stringify(credentialPlace(host));
    const clash = credentials.some(
      (other, at) =>
        at !== index &&
        other.placeholder !== undefined &&
        placeholder.includes(other.placeholder) &&
        JSON.stringify(credentialPlace(other.host)) === place,
    );
    if (!clash) continue;
    const message = "must not be or contain another placeholder of the same host";
    issues.push({ code: "custom", path: ["credentials", index, "placeholder"], input: placeholder, message });
  }
  if (typeof value.allow === "function") return;
  const allowed = value.allow.map(parseNetworkEntry).filter((rule) => "host" in rule);
  for (const [index, { host }] of credentials.entries()) {
    const place = credentialPlace(host);
    if (place && allowed.some((pattern) => matchesHost(pattern, place.host, place.port))) continue;
    const message = "must be covered by `allow`: list the host there, too";
    issues.push({ code: "custom", path: ["credentials", index, "host"], input: host, message });
  }
}

function parsed(entry: string): HostPattern | undefined {
  const pattern = parseHostPattern(entry);
  return "problem" in pattern ? undefined : pattern;
}

function credentialPlace(entry: string): { readonly host: string; readonly port: number } | undefined {
  const pattern = parsed(entry);
  const host = pattern && canonicalHost(pattern.host);
  return host === undefined ? undefined : { host, port: pattern?.port ?? 443 };
}

/**
 * A `NetworkPolicy`, as an option of an executor.
 *
 * @param hint - what else to do, after "It must be …"; for backends that have named networks.
 */
export function networkPolicyOption(hint = ""): z.ZodType<NetworkPolicy> {
  const policy = optionsSchema(allowedNetworkOptions).check(checkCredentials);
  return z.union([z.enum(["none", "open"]), policy], `must be "none", "open" or \`{ allow: [hosts] }\`${hint}`);
}
