import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { Agent } from "node:http";
import { Agent as TlsAgent } from "node:https";
import path from "node:path";
import { BackendUnavailableError, InvalidInputError } from "@fenced/core";
import { optionsSchema, type OptionSchemas } from "@fenced/core/options";
import { homeDirectory, loadPackage } from "@fenced/core/runtime";
import type Docker from "dockerode";
import type { DockerOptions } from "dockerode";
import { z } from "zod";
import { answered, connectionReason, dockerReason } from "./daemon-calls.ts";
import { SshAgent, sshWords } from "./ssh-agent.ts";

/**
 * Where a daemon listens: an address as in `DOCKER_HOST` (`unix://`, `npipe://`, `tcp://`, `http://`, `https://`,
 * `ssh://`), or an address with a directory of TLS certificates (`ca.pem`, `cert.pem`, `key.pem`).
 */
export type DockerConnection =
  | string
  | {
      readonly host: string;
      /** Directory of the certificates. Default: no TLS. */
      readonly certPath?: string;
      /** Verify the daemon's certificate. Default: true. */
      readonly tlsVerify?: boolean;
    };

/** The schema of a connection. */
export const dockerConnection: z.ZodType<DockerConnection> = z.union([
  z.string(),
  optionsSchema({
    host: z.string(),
    certPath: z.string().exactOptional(),
    tlsVerify: z.boolean().exactOptional(),
  } satisfies OptionSchemas<Exclude<DockerConnection, string>>),
]);

/** How to reach a daemon, as plain data. */
export type DaemonTransport =
  | { readonly kind: "socket"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | {
      readonly kind: "tls";
      readonly host: string;
      readonly port: number;
      readonly certPath?: string;
      readonly verify: boolean;
    }
  | { readonly kind: "ssh"; readonly words: readonly string[] };

/** A client for a daemon that has not been contacted yet. */
export interface DaemonClient {
  readonly docker: Docker;
  readonly transport: DaemonTransport;
  /** Closes idle connections. */
  release(): void;
}

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
        "Start Docker or Podman (`podman system service`), make sure that this user can access its socket, or set the option `docker` or DOCKER_HOST to its address.",
      option: "docker",
    },
  );
}

const notSet = "not set";
const missing = "does not exist";

async function tryStrategy({ connection: find }: Strategy): Promise<Daemon | string> {
  try {
    const connection = find();
    if (connection === undefined) return notSet;
    const transport = readConnection(connection);
    if (transport.kind === "socket" && process.platform !== "win32" && !existsSync(transport.path)) {
      return `${transport.path}: ${missing}`;
    }
    return await ping(typeof connection === "string" ? connection : connection.host, transport);
  } catch (error) {
    // There is no client, so that no other strategy can work either.
    if (BackendUnavailableError.isInstance(error)) throw error;
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
    { name: "the current Docker context", connection: connectionFromContext, chosen: true },
    ...sockets().map(({ name, file }) => ({ name, connection: () => socketAddress(file), chosen: false })),
  ];
}

function socketAddress(file: string): string {
  return process.platform === "win32" ? `npipe://${file}` : `unix://${file}`;
}

/** Where daemons listen on this machine. */
export function daemonSocketPlaces(): readonly string[] {
  return sockets().map(({ file }) => file);
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
    { name: "Docker Desktop's socket", file: path.join(homeDirectory(), ".docker", "run", "docker.sock") },
    { name: "Podman's socket", file: path.join(user, "podman", "podman.sock") },
    { name: "Podman's system-wide socket", file: "/run/podman/podman.sock" },
  ];
}

/** The connection that `DOCKER_HOST` and the TLS variables describe. */
function connectionFromEnvironment(host: string): DockerConnection {
  const { DOCKER_TLS_VERIFY: verify = "", DOCKER_CERT_PATH: certPath } = process.env;
  if (!host.startsWith("tcp:") || (verify === "" && certPath === undefined)) return host;
  return { host, certPath: certPath ?? path.join(homeDirectory(), ".docker"), tlsVerify: verify !== "" };
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
function connectionFromContext(): DockerConnection | undefined {
  const { DOCKER_CONFIG: directory = path.join(homeDirectory(), ".docker"), DOCKER_CONTEXT: chosen } = process.env;
  const name = chosen ?? readJson(path.join(directory, "config.json"), configFile)?.currentContext;
  if (name === undefined || name === "" || name === "default") return undefined;
  const id = createHash("sha256").update(name).digest("hex");
  const meta = readJson(path.join(directory, "contexts", "meta", id, "meta.json"), metaFile);
  if (!meta) throw new Error(`there is no context ${JSON.stringify(name)} in ${directory}`);
  const { Host: host, SkipTLSVerify: skipVerify } = meta.Endpoints.docker;
  const certPath = path.join(directory, "contexts", "tls", id, "docker");
  return existsSync(certPath) ? { host, certPath, tlsVerify: skipVerify !== true } : host;
}

function describeIssue({ path: where, message }: z.core.$ZodIssue): string {
  return `${where.join(".")}: ${message}`;
}

function readJson<T>(file: string, schema: z.ZodType<T>): T | undefined {
  if (!existsSync(file)) return undefined;
  try {
    return schema.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch (cause) {
    const why = cause instanceof z.ZodError ? cause.issues.map(describeIssue).join(", ") : dockerReason(cause);
    throw new Error(`${file} cannot be used: ${why}; correct or remove it, or set DOCKER_HOST`, { cause });
  }
}

/**
 * Resolves a connection to a transport.
 *
 * @throws InvalidInputError if the address is invalid or a certificate cannot be read.
 */
export function readConnection(connection: DockerConnection): DaemonTransport {
  const { host, ...tls } = typeof connection === "string" ? { host: connection } : connection;
  const socket = /^(?:unix|npipe):\/\/(.+)$/.exec(host)?.[1] ?? (path.isAbsolute(host) ? host : undefined);
  if (socket !== undefined) return { kind: "socket", path: socket.replaceAll("/", path.sep) };
  const url = parse(host);
  const name = url.hostname.replaceAll(/^\[|\]$/g, "");
  if (url.protocol === "ssh:") return { kind: "ssh", words: sshWords(url) };
  const certPath = tls.certPath === undefined ? undefined : path.resolve(tls.certPath);
  readCertificates(certPath);
  if (url.protocol !== "https:" && certPath === undefined) {
    return { kind: "tcp", host: name, port: Number(url.port || 2375) };
  }
  const certificates = certPath === undefined ? {} : { certPath };
  return { kind: "tls", host: name, port: Number(url.port || 2376), ...certificates, verify: tls.tlsVerify ?? true };
}

/** Creates a client without connecting. */
function openClient(transport: DaemonTransport): DaemonClient {
  const agent = agentOf(transport);
  return { docker: makeClient({ ...clientOptions(transport), agent }), transport, release: () => agent.destroy() };
}

function clientOptions(transport: DaemonTransport): DockerOptions {
  if (transport.kind === "socket") return { socketPath: transport.path };
  // With ssh, the client speaks HTTP over the agent's connection; the host name only appears in the request headers.
  if (transport.kind === "ssh") return { protocol: "http", host: "docker", port: 80 };
  const { kind, host, port } = transport;
  return { protocol: kind === "tls" ? "https" : "http", host, port };
}

function agentOf(transport: DaemonTransport): Agent {
  if (transport.kind === "ssh") return new SshAgent(transport.words);
  if (transport.kind !== "tls") return new Agent({ keepAlive: true });
  const { certPath, verify } = transport;
  return new TlsAgent({ keepAlive: true, ...readCertificates(certPath), rejectUnauthorized: verify });
}

/** The client reads these variables itself, and would mix them with the chosen connection. */
const clientVariables = ["DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_PATH_PREFIX"];

function makeClient(options: DockerOptions & { readonly agent: Agent }): Docker {
  const saved = clientVariables.map((name) => [name, process.env[name]] as const);
  for (const name of clientVariables) Reflect.deleteProperty(process.env, name);
  try {
    return new (loadClient())(options);
  } finally {
    for (const [name, value] of saved) if (value !== undefined) process.env[name] = value;
  }
}

const through = ["@fenced/executor-docker", "@fenced/executor-jupyter", "@fenced/docker-daemon"] as const;

/**
 * Loads the client when a daemon is looked for. It depends on `ssh2`, with native modules that bundlers cannot handle, and on
 * gRPC, neither of which is used here.
 */
function loadClient(): typeof Docker {
  const client = loadPackage("dockerode", { url: import.meta.url, through });
  if (isClient(client)) return client;
  throw new BackendUnavailableError("The package dockerode is not the client of Docker", {
    remedy: "Run `npm install dockerode`.",
  });
}

function isClient(value: unknown): value is typeof Docker {
  return typeof value === "function";
}

function parse(host: string): URL {
  const url = URL.canParse(host) ? new URL(host) : undefined;
  const known = url !== undefined && ["tcp:", "http:", "https:", "ssh:"].includes(url.protocol) && url.hostname !== "";
  if (!known) {
    throw new InvalidInputError(`${JSON.stringify(host)} is not the address of a Docker daemon`, {
      remedy: "Write it as unix:///path, npipe:////./pipe/name, tcp://host:port, https://host:port or ssh://user@host.",
    });
  }
  if (url.password !== "") {
    throw new InvalidInputError("The address of the Docker daemon contains a password, which is not supported", {
      remedy: "Remove the password, and let ssh log in with a key.",
    });
  }
  return url;
}

/**
 * The files in `certPath`: an authority to trust, a client certificate with its key, or both, as in a Docker context.
 */
function readCertificates(directory: string | undefined): object | undefined {
  if (directory === undefined) return undefined;
  const files = { ca: "ca.pem", cert: "cert.pem", key: "key.pem" };
  try {
    const found = Object.entries(files).filter(([, name]) => existsSync(path.join(directory, name)));
    if (found.length === 0) throw new Error("it contains no ca.pem, cert.pem or key.pem");
    const certificates = Object.fromEntries(
      found.map(([option, name]) => [option, readFileSync(path.join(directory, name))]),
    );
    if ("cert" in certificates !== "key" in certificates) throw new Error("cert.pem and key.pem belong together");
    return certificates;
  } catch (cause) {
    throw new InvalidInputError(`The certificates in ${directory} cannot be used: ${String(cause)}`, {
      remedy: "Use a directory that contains ca.pem, or cert.pem and key.pem, or all three.",
      cause,
    });
  }
}
