import type { PoolClient } from "../http/pool-client.ts";
import { metadataSchema } from "./wire-types.ts";

/** What a pool's sessions run. */
export type PoolType = "PythonLTS" | "NodeLTS" | "Shell";

/** What a pool reports about its sessions. */
export interface PoolMetadata {
  /** `undefined` if it reports no known type. */
  readonly poolType: PoolType | undefined;
  /** Names of its sessions' packages. */
  readonly packages: readonly string[];
}

/** Asks the pool. */
export async function readMetadata(
  client: PoolClient,
  query: Readonly<Record<string, string>>,
  signal?: AbortSignal,
): Promise<PoolMetadata> {
  const call = { method: "GET", path: ["metadata"], query, repeatable: true, signal } as const;
  const { runtimes, packages } = await client.json(call, metadataSchema);
  return { poolType: poolTypeOf(runtimes), packages };
}

function poolTypeOf(runtimes: string): PoolType | undefined {
  if (/python/i.test(runtimes)) return "PythonLTS";
  if (/node/i.test(runtimes)) return "NodeLTS";
  return /shell|bash/i.test(runtimes) ? "Shell" : undefined;
}
