import { Pool } from "pg";
import { createClient } from "redis";
import type { SessionDirectory } from "../../src/index.ts";
import { postgresDirectory } from "../../src/postgres/index.ts";
import { redisDirectory } from "../../src/redis/index.ts";

/** A directory over a connection of its own. */
export interface OpenDirectory extends AsyncDisposable {
  readonly directory: SessionDirectory;
}

/** Connects to an engine, as another process would. */
export async function openDirectory(url: string): Promise<OpenDirectory> {
  if (url.startsWith("redis:")) {
    const client = createClient({ url }).on("error", () => {});
    await client.connect();
    return { directory: redisDirectory(client), [Symbol.asyncDispose]: async () => client.destroy() };
  }
  const pool = new Pool({ connectionString: url }).on("error", () => {});
  const directory = postgresDirectory(pool);
  await directory.setup();
  return { directory, [Symbol.asyncDispose]: () => pool.end() };
}
