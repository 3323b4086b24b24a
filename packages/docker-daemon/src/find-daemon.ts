import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import { z } from "zod";
import {
  addressOf,
  answered,
  connectionReason,
  type DaemonClient,
  type DaemonTransport,
  type DockerConnection,
  dockerReason,
  openClient,
  readConnection,
} from "./daemon-client.ts";

/** A daemon that answered. */
export interface Daemon extends DaemonClient {
  /** The address, as in `DOCKER_HOST`. */
  readonly address: string;
}

/** A way to find a daemon. */
interface Strategy {
  /** What it checks, for the message. */
  readonly name: string;
  /** Where the daemon should be; `undefined` to go on to the next strategy. */
  readonly connection: () => DockerConnection | undefined;
  /** The user chose this daemon, so no other one is tried instead. */
  readonly chosen: boolean;
}

const answerMs = 5000;
const sshAnswerMs = 15_000;

/**
 * Finds the daemon: the given one, or else the one in `DOCKER_HOST`, in the current Docker context, at the default
 * socket, at a rootless socket, or Podman's.
 *
 * @throws BackendUnavailableError that lists what was tried and how each attempt failed.
 */
export async function findDaemon(given: DockerConnection | undefined): Promise<Daemon> {
  const tried: string[] = [];
  for (const strategy of strategies(given)) {
    const outcome = await tryStrategy(strategy);
    if (typeof outcome !== "string") return outcome;
    tried.push(`${strategy.name}: ${outcome}`);
    if (strategy.chosen && outcome !== notSet) break;
  }
  throw new BackendUnavailableError(
    `No Docker daemon answers. Tried:\n${tried.map((each) => `  - ${each}`).join("\n")}\n`,
    {
      remedy:
        "Start Docker or Podman (`podman system service`), make sure that this user may open its socket, or set the option `docker` or DOCKER_HOST to its address.",
    },
  );
}

const notSet = "not set";
const missing = "there is none";

async function tryStrategy({ connection: find }: Strategy): Promise<Daemon | string> {
  try {
    const connection = find();
    if (connection === undefined) return notSet;
    const transport = readConnection(connection);
    if (transport.kind === "socket" && process.platform !== "win32" && !existsSync(transport.path)) {
      return `${transport.path}: ${missing}`;
    }
    return await ping(addressOf(connection), transport);
  } catch (error) {
    return dockerReason(error);
  }
}

async function ping(address: string, transport: DaemonTransport): Promise<Daemon> {
  const client = openClient(transport);
  try {
    await answered(client.docker.ping(), "ping", transport.kind === "ssh" ? sshAnswerMs : answerMs);
    return { ...client, address };
  } catch (error) {
    client.release();
    throw new Error(`${address}: ${connectionReason(error, transport.kind)}`, { cause: error });
  }
}

function strategies(given: DockerConnection | undefined): Strategy[] {
  if (given !== undefined) return [{ name: "the option `docker`", connection: () => given, chosen: true }];
  const host = process.env["DOCKER_HOST"];
  const fromHost = host === undefined || host === "" ? undefined : connectionFromEnvironment(host);
  return [
    { name: "DOCKER_HOST", connection: () => fromHost, chosen: true },
    { name: "the current Docker context", connection: () => connectionFromContext(), chosen: true },
    ...sockets().map(({ name, file }) => ({ name, connection: () => socketAddress(file), chosen: false })),
  ];
}

function socketAddress(file: string): string {
  return process.platform === "win32" ? `npipe://${file}` : `unix://${file}`;
}

function sockets(): { readonly name: string; readonly file: string }[] {
  if (process.platform === "win32") {
    return [
      { name: "the default pipe", file: "//./pipe/docker_engine" },
      { name: "Podman's pipe", file: "//./pipe/podman-machine-default" },
    ];
  }
  const user = process.env["XDG_RUNTIME_DIR"] ?? `/run/user/${process.getuid?.() ?? 0}`;
  return [
    { name: "the default socket", file: "/var/run/docker.sock" },
    { name: "the rootless socket", file: path.join(user, "docker.sock") },
    { name: "Docker Desktop's socket", file: path.join(homedir(), ".docker", "run", "docker.sock") },
    { name: "Podman's socket", file: path.join(user, "podman", "podman.sock") },
    { name: "Podman's socket for all", file: "/run/podman/podman.sock" },
  ];
}

/** The connection that `DOCKER_HOST` and the TLS variables describe. */
function connectionFromEnvironment(host: string, env: NodeJS.ProcessEnv = process.env): DockerConnection {
  const verify = env["DOCKER_TLS_VERIFY"] ?? "";
  if (!host.startsWith("tcp:") || (verify === "" && env["DOCKER_CERT_PATH"] === undefined)) return host;
  return { host, certPath: env["DOCKER_CERT_PATH"] ?? path.join(homedir(), ".docker"), tlsVerify: verify !== "" };
}

const configFile = z.object({ currentContext: z.string().optional() });
const metaFile = z.object({
  Endpoints: z.object({ docker: z.object({ Host: z.string(), SkipTLSVerify: z.boolean().optional() }) }),
});

/**
 * The connection of the context that the `docker` command would use: `DOCKER_CONTEXT`, or else the one selected with
 * `docker context use`.
 *
 * @returns `undefined` for the default context, which only means the default socket.
 * @throws Error if the context does not exist or cannot be read.
 */
function connectionFromContext(env: NodeJS.ProcessEnv = process.env): DockerConnection | undefined {
  const directory = env["DOCKER_CONFIG"] ?? path.join(homedir(), ".docker");
  const name = env["DOCKER_CONTEXT"] ?? readJson(path.join(directory, "config.json"), configFile)?.currentContext;
  if (name === undefined || name === "" || name === "default") return undefined;
  const id = createHash("sha256").update(name).digest("hex");
  const meta = readJson(path.join(directory, "contexts", "meta", id, "meta.json"), metaFile);
  if (!meta) throw new Error(`there is no context ${JSON.stringify(name)} in ${directory}`);
  const { Host: host, SkipTLSVerify: skipVerify } = meta.Endpoints.docker;
  const certPath = path.join(directory, "contexts", "tls", id, "docker");
  return existsSync(certPath) ? { host, certPath, tlsVerify: skipVerify !== true } : host;
}

function readJson<T>(file: string, schema: z.ZodType<T>): T | undefined {
  if (!existsSync(file)) return undefined;
  return schema.parse(JSON.parse(readFileSync(file, "utf8")));
}
