import { BackendUnavailableError } from "@fenced/core";
import type { E2BExecutorOptions } from "../e2b-executor-options.ts";

/** The port of a sandbox at which its processes are started. */
const envdPort = 49_983;

/** Where a service is. */
export interface ServiceAddress {
  readonly domain: string;
  readonly apiUrl: string;
  /** Default: each sandbox has an address of its own. */
  readonly sandboxUrl?: string;
}

/** Finds the service that the options, or else this program's environment, name. */
export function serviceAddress(options: E2BExecutorOptions): ServiceAddress {
  const domain = options.domain ?? variable("E2B_DOMAIN") ?? "e2b.app";
  const apiUrl = options.apiUrl ?? variable("E2B_API_URL") ?? `https://api.${domain}`;
  const sandboxUrl = options.sandboxUrl ?? variable("E2B_SANDBOX_URL");
  return { domain, apiUrl, ...(sandboxUrl !== undefined && { sandboxUrl }) };
}

/** @throws BackendUnavailableError if there is no key. */
export function apiKeyOf({ apiKey, apiKeyVariable = "E2B_API_KEY" }: E2BExecutorOptions): string {
  const key = apiKey ?? variable(apiKeyVariable);
  if (key !== undefined) return key;
  throw new BackendUnavailableError(`There is no API key: the environment variable ${apiKeyVariable} is not set`, {
    remedy: "Set it to a key of the service, or name another variable with `apiKeyVariable`.",
    option: "apiKeyVariable",
  });
}

/** A sandbox, as it is reached. */
export interface SandboxAccess {
  readonly id: string;
  /** Where its processes are started. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What the service says about a sandbox. */
export interface SandboxAnswer {
  readonly sandboxID: string;
  readonly envdAccessToken?: string | null | undefined;
  readonly domain?: string | null | undefined;
}

/** How to reach a sandbox. */
export function sandboxAccess(address: ServiceAddress, answer: SandboxAnswer): SandboxAccess {
  const { sandboxID: id, envdAccessToken: token } = answer;
  const own = `https://${envdPort}-${id}.${answer.domain ?? address.domain}`;
  return {
    id,
    url: withoutSlash(address.sandboxUrl ?? own),
    headers: {
      "e2b-sandbox-id": id,
      "e2b-sandbox-port": String(envdPort),
      ...(typeof token === "string" && { "x-access-token": token }),
    },
  };
}

/** An address to which a path can be added. */
export function withoutSlash(url: string): string {
  return url.replace(/\/+$/, "");
}

function variable(name: string): string | undefined {
  const value = process.env[name];
  return value === "" ? undefined : value;
}
