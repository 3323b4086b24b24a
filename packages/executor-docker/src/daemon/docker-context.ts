import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { errorCode } from "@fenced/executor-kit";
import { z } from "zod";
import type { DockerConnection } from "./docker-connection.ts";

const configFile = z.object({ currentContext: z.string().optional() });
const metaFile = z.object({
  Endpoints: z.object({ docker: z.object({ Host: z.string(), SkipTLSVerify: z.boolean().optional() }) }),
});

/**
 * The context that the `docker` program would use: `DOCKER_CONTEXT`, else the one that `docker context use` chose.
 *
 * @returns `undefined` if that is the default one, which is no more than the default socket.
 * @throws Error if it is not there or cannot be read.
 */
export function currentContext(
  env: NodeJS.ProcessEnv = process.env,
): { readonly name: string; readonly connection: DockerConnection } | undefined {
  const directory = env["DOCKER_CONFIG"] ?? path.join(homedir(), ".docker");
  const name = env["DOCKER_CONTEXT"] ?? readJson(path.join(directory, "config.json"), configFile)?.currentContext;
  if (name === undefined || name === "" || name === "default") return undefined;
  const id = createHash("sha256").update(name).digest("hex");
  const meta = readJson(path.join(directory, "contexts", "meta", id, "meta.json"), metaFile);
  if (!meta) throw new Error(`there is no context ${JSON.stringify(name)} in ${directory}`);
  const { Host: host, SkipTLSVerify: skipVerify } = meta.Endpoints.docker;
  const certPath = path.join(directory, "contexts", "tls", id, "docker");
  const connection = existsSync(certPath) ? { host, certPath, tlsVerify: skipVerify !== true } : host;
  return { name, connection };
}

function readJson<T>(file: string, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}
