import { lookup } from "node:dns/promises";
import { BackendUnavailableError } from "@fenced/core";
import { pythonOf, reachedAddresses } from "@fenced/executor-kit/supervisor";
import type { ServiceAddress } from "../service/service-address.ts";
import type { E2BSession } from "./e2b-session.ts";

/** Seconds for which nothing may answer. */
const silentSeconds = 1;
/** Addresses that answer wherever there is an internet. */
const publicTargets = ["tcp 1.1.1.1 443", "tcp 8.8.8.8 443"];
/** How many addresses of the service's name are tried. */
const mostAddresses = 4;

/**
 * Checks from inside that a sandbox in which no code has run yet is cut off: services may ignore that it was wanted.
 *
 * @throws BackendUnavailableError if it reaches the service itself, or well-known addresses of the internet; the signal's reason.
 */
export async function assertCutOff(
  { supervisor, inventory, sandbox }: E2BSession,
  { apiUrl }: ServiceAddress,
  signal: AbortSignal,
): Promise<void> {
  const { hostname, port, protocol } = new URL(apiUrl);
  const own = await lookup(hostname.replace(/^\[|\]$/g, ""), { all: true }).catch(() => []);
  const number = port === "" ? (protocol === "https:" ? 443 : 80) : port;
  const targets = [...own.slice(0, mostAddresses).map(({ address }) => `tcp ${address} ${number}`), ...publicTargets];
  const python = pythonOf(inventory);
  const reached = await reachedAddresses(supervisor, { python, seconds: silentSeconds, targets, signal });
  if (reached.length === 0) return;
  throw new BackendUnavailableError(
    `The sandbox ${sandbox} is not cut off from the network: it reaches ${reached.join(", ")}`,
    {
      remedy:
        'Use a service that obeys `allow_internet_access: false`, a template that passes `network` on to its executor, or set `network` to "open".',
      option: "network",
    },
  );
}
