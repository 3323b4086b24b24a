import type { AllowedNetwork, CodeExecutor, NetworkDenial, NetworkPolicy } from "@fenced/core";
import {
  canonicalHost,
  type HostPattern,
  isAddress,
  isInRange,
  matchesHost,
  parseAddressRange,
  parseHostPattern,
} from "@fenced/core/network";
import * as z from "zod";
import { E2BFailure } from "./e2b-failure.ts";
import { deniesAll, type EgressRules, isDenied, nameOf } from "./egress-rules.ts";

/**
 * How the network of a sandbox follows its client's rules. `rules`: it obeys those that it has at the time. `none`: its template has no
 * network. `cut-off`: it was created without one, as its client wanted. `fixed`: it is whatever its template gives.
 */
export type Reach = "rules" | "none" | "cut-off" | "fixed";

/** See `Reach`. */
export const reachSchema: z.ZodType<Reach> = z.enum(["rules", "none", "cut-off", "fixed"]);

/** What a new place gets. */
export interface GivenNetwork {
  readonly reach: Reach;
  /** `undefined`: what the template has by itself. */
  readonly network: NetworkPolicy | undefined;
}

/** What a sandbox's client wants now. */
export interface Client {
  readonly rules: EgressRules;
  readonly denials: readonly NetworkDenial[];
}

/**
 * The network of a new place: the operator's, less what the client does not want.
 *
 * @param limit - the template's policy; `undefined` if it has not said it.
 * @throws E2BFailure if a rule could not be enforced there, or allows what the policy does not.
 */
export function networkFor(template: string, limit: NetworkPolicy | undefined, client: Client): GivenNetwork {
  const { rules } = client;
  if (typeof limit === "object") {
    assertWithin(template, limit, rules);
    return { reach: "rules", network: narrowed(limit, client) };
  }
  if (limit === "none") {
    assertNothingAllowed(template, rules);
    return { reach: "none", network: "none" };
  }
  if (!isDenied(rules)) return { reach: "fixed", network: limit };
  if (deniesAll(rules) && rules.allowOut.length === 0) return { reach: "cut-off", network: "none" };
  throw notEnforced(template);
}

/** @throws E2BFailure if a running sandbox cannot follow new rules. */
export function assertChangeable(
  template: string,
  {
    reach,
    limit,
    rules,
  }: { readonly reach: Reach; readonly limit: NetworkPolicy | undefined; readonly rules: EgressRules },
): void {
  if (reach === "rules" && typeof limit === "object") assertWithin(template, limit, rules);
  if (reach === "none" || (reach === "rules" && typeof limit !== "object")) assertNothingAllowed(template, rules);
  if (reach === "fixed" && isDenied(rules)) throw notEnforced(template);
  if (reach === "cut-off" && !(deniesAll(rules) && rules.allowOut.length === 0)) {
    throw new E2BFailure(
      501,
      "The sandbox was created without a network and cannot get one while it runs: create another sandbox",
    );
  }
}

/** The operator's policy, with the client's rules as they are at each connection. */
export function narrowed(limit: AllowedNetwork, client: Client): AllowedNetwork {
  const { deny = [] } = limit;
  return { ...limit, deny: () => [...(typeof deny === "function" ? deny() : deny), ...client.denials] };
}

/** @throws E2BFailure if an executor does not have the network that its template got. */
export function assertObeyed(template: string, { network }: GivenNetwork, { capabilities }: CodeExecutor): void {
  const isObeyed =
    network === undefined ||
    (typeof network === "string" ? capabilities.network === network : capabilities.network === undefined);
  if (isObeyed) return;
  throw new E2BFailure(
    501,
    `The template ${template} does not restrict its network: its operator must pass \`network\` on to the executor's option of that name`,
  );
}

function notEnforced(template: string): E2BFailure {
  return new E2BFailure(
    501,
    `The template ${template} has no network policy by which rules could be enforced. Deny everything, or ask the server's operator for one: { network: { allow: ["*"] }, create }, or --allow "*"`,
  );
}

function assertNothingAllowed(template: string, { allowOut: [entry] }: EgressRules): void {
  if (entry !== undefined) throw notAllowed(template, entry);
}

/** Refuses what could never be reached. Where that is not known, such as with a list that changes, nothing is refused. */
function assertWithin(template: string, { allow, onUnknownHost }: AllowedNetwork, { allowOut }: EgressRules): void {
  if (typeof allow === "function" || onUnknownHost) return;
  const limits = allow
    .map((entry) => parseHostPattern(typeof entry === "string" ? entry : entry.host))
    .filter((pattern) => "host" in pattern);
  const refused = allowOut.find((entry) => !limits.some((limit) => overlaps(limit, entry)));
  if (refused !== undefined) throw notAllowed(template, refused);
}

function notAllowed(template: string, entry: string): E2BFailure {
  return new E2BFailure(
    403,
    `network.allowOut: ${JSON.stringify(entry)} is not in the network policy of the template ${template}, which clients can only narrow`,
  );
}

/** Whether something that an entry allows may be allowed by the operator, too. A name may have any address. */
function overlaps(limit: HostPattern, entry: string): boolean {
  const range = parseAddressRange(entry);
  if (range) return !isAddress(limit.host) || isInRange(range, limit.host);
  const name = nameOf(entry);
  if (!name || isAddress(limit.host)) return false;
  const port = limit.port ?? 443;
  const [host, limitHost] = [sample(name), sample(limit)];
  return matchesHost(limit, host, port) || matchesHost(name, limitHost, port);
}

/** A name that a pattern covers, and that another one covers if it covers all of them. */
function sample({ host, below }: HostPattern): string {
  if (!below) return host;
  const name = host === "" ? "x" : `x.${host}`;
  return canonicalHost(name) ?? name;
}
