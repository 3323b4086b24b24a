import type { AllowedNetwork } from "@fenced/core";
import { longestTimer } from "@fenced/core/abort";
import { type OptionSchemas, wholeNumberOption } from "@fenced/core/options";
import * as z from "zod";

/** Options of executors whose sessions can outlive their programs. */
export interface KeepAliveOptions {
  /**
   * How long a session lives while no program is connected to it, in milliseconds. It then survives the end of its
   * program, even by `kill -9`, `detach()`, and a broken connection; `connectExecutor` connects to it with
   * `executor.handle`. If nobody comes back in time, it ends by itself, and nothing is left. `stop()` and disposal still
   * end it at once. Default: 0, it ends with its program.
   */
  readonly keepAliveMs?: number | undefined;
}

/** The schemas of these options. */
export const keepAliveOptions: OptionSchemas<KeepAliveOptions> = {
  keepAliveMs: wholeNumberOption({ from: 0, to: longestTimer, unit: "ms" }).exactOptional(),
};

/**
 * The schema of `keepAliveMs` for executors whose sessions end with their programs: refuses all but 0.
 *
 * @param reason - a sentence that says why, and what to do instead.
 */
export function noKeepAlive(reason: string): OptionSchemas<KeepAliveOptions> {
  return { keepAliveMs: z.literal(0, reason).exactOptional() };
}

/**
 * Returns settings for the handle of a session: without functions, callbacks and what was restored. A program that
 * connects passes its own.
 */
export function withoutCallbacks(settings: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { functions: _, restore: __, record: ___, network, ...rest } = settings;
  return { ...withoutFunctions(rest), network: isPolicy(network) ? withoutSecrets(network) : network };
}

function isPolicy(network: unknown): network is KeptPolicy {
  return typeof network === "object" && network !== null && "allow" in network;
}

/** What of a policy can be part of a handle. */
type KeptPolicy = Pick<AllowedNetwork, "allow" | "deny" | "upstreamProxy">;

/** Without a function that it needs, nothing is allowed until the program that connects gives it again. */
function withoutSecrets({ allow, deny, upstreamProxy }: KeptPolicy): AllowedNetwork {
  if (typeof allow === "function" || typeof deny === "function" || upstreamProxy?.password) return { allow: [] };
  return { allow, ...(deny && { deny }), ...(upstreamProxy && { upstreamProxy }) };
}

function withoutFunctions(settings: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(settings).flatMap(([name, value]: [string, unknown]): [string, unknown][] => {
      if (typeof value === "function") return [];
      // JSON has no Infinity; this number of milliseconds is as good as none.
      if (value === Infinity) return [[name, Number.MAX_VALUE]];
      const isPlain = typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
      return [[name, isPlain ? withoutFunctions(value) : value]];
    }),
  );
}
