import { homedir } from "node:os";
import path from "node:path";
import { z } from "zod";

/**
 * Where a daemon listens: an address as `DOCKER_HOST` has it (`unix://`, `npipe://`, `tcp://`, `http://`, `https://`,
 * `ssh://`), or one with a directory of certificates (`ca.pem`, `cert.pem`, `key.pem`) to speak TLS with.
 */
export type DockerConnection =
  | string
  | {
      readonly host: string;
      /** Directory of the certificates. Default: no TLS. */
      readonly certPath?: string;
      /** Check the daemon's certificate. Default: true. */
      readonly tlsVerify?: boolean;
    };

/** The shape of a connection in a component's config. */
export const dockerConnection: z.ZodType<DockerConnection> = z.union([
  z.string(),
  z.strictObject({
    host: z.string(),
    certPath: z.string().exactOptional(),
    tlsVerify: z.boolean().exactOptional(),
  }),
]);

/** The address of a connection, for messages. */
export function addressOf(connection: DockerConnection): string {
  return typeof connection === "string" ? connection : connection.host;
}

/** The connection that `DOCKER_HOST` and the variables about TLS describe. */
export function connectionFromEnvironment(host: string, env: NodeJS.ProcessEnv = process.env): DockerConnection {
  const verify = env["DOCKER_TLS_VERIFY"] ?? "";
  if (!host.startsWith("tcp:") || (verify === "" && env["DOCKER_CERT_PATH"] === undefined)) return host;
  return { host, certPath: env["DOCKER_CERT_PATH"] ?? path.join(homedir(), ".docker"), tlsVerify: verify !== "" };
}
