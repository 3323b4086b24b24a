import { existsSync, readFileSync } from "node:fs";
import { Agent } from "node:http";
import { Agent as TlsAgent } from "node:https";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, InvalidInputError } from "@fenced/core";
import { optionsSchema, type OptionSchemas } from "@fenced/core/options";
import Docker, { type DockerOptions } from "dockerode";
import { z } from "zod";
import { SshAgent, type SshTarget, sshWords } from "./ssh-agent.ts";

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

/** The address of a connection, for messages. */
export function addressOf(connection: DockerConnection): string {
  return typeof connection === "string" ? connection : connection.host;
}

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
  if (url.protocol === "ssh:") return { kind: "ssh", words: sshWords(sshTarget(url, name)) };
  const certPath = tls.certPath === undefined ? undefined : path.resolve(tls.certPath);
  readCertificates(certPath);
  if (url.protocol !== "https:" && certPath === undefined) {
    return { kind: "tcp", host: name, port: Number(url.port || 2375) };
  }
  const certificates = certPath === undefined ? {} : { certPath };
  return { kind: "tls", host: name, port: Number(url.port || 2376), ...certificates, verify: tls.tlsVerify ?? true };
}

/** Creates a client without connecting. */
export function openClient(transport: DaemonTransport): DaemonClient {
  const agent = agentOf(transport);
  return { docker: makeClient({ ...clientOptions(transport), agent }), transport, release: () => agent.destroy() };
}

function clientOptions(transport: DaemonTransport): DockerOptions {
  if (transport.kind === "socket") return { socketPath: transport.path };
  // Over ssh, the client speaks HTTP over the agent's connection; the name is used only in the request's headers.
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
    return new Docker(options);
  } finally {
    for (const [name, value] of saved) if (value !== undefined) process.env[name] = value;
  }
}

function sshTarget(url: URL, host: string): SshTarget {
  const socket = decodeURIComponent(url.pathname);
  return {
    host,
    ...(url.port === "" ? {} : { port: Number(url.port) }),
    ...(url.username === "" ? {} : { user: decodeURIComponent(url.username) }),
    ...(socket === "" || socket === "/" ? {} : { socket }),
  };
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
    throw new InvalidInputError("The address of the Docker daemon contains a password, which cannot be used", {
      remedy: "Remove it, and let ssh log in with a key.",
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
      remedy: "Give a directory with ca.pem, or cert.pem and key.pem, or all three.",
      cause,
    });
  }
}

/** The client of dockerode. */
export type DockerClient = Docker;
export type Container = Docker.Container;
export type Exec = Docker.Exec;
export type { ContainerCreateOptions, HostConfig, MountSettings } from "dockerode";

/** The text of a daemon's error or of a broken connection. */
export function dockerReason(error: unknown): string {
  const json = field(error, "json");
  const said = field(json, "message") ?? field(json, "cause");
  if (typeof said === "string" && said !== "") return said.trim();
  if (error instanceof AggregateError) return error.errors.map(dockerReason).join(", ");
  return error instanceof Error ? error.message : String(error);
}

/** Why a daemon cannot be reached over a network, including what a failed TLS handshake means. */
export function connectionReason(error: unknown, transport: DaemonTransport["kind"]): string {
  const reason = dockerReason(error);
  const given = field(error, "code");
  const code = typeof given === "string" ? given : "";
  const broken = code === "ECONNRESET" || code === "EPIPE";
  if (transport === "tls" && (broken || code.startsWith("ERR_SSL_"))) {
    // OpenSSL adds the location in its source code.
    const said = /SSL routines:[^:]*:([^:]+):/.exec(reason)?.[1] ?? reason;
    return `it refused the TLS connection (${said}); check that cert.pem and key.pem exist and are signed by its authority`;
  }
  if (/CERT|UNABLE_TO_|SELF_SIGNED/.test(code)) {
    return `its certificate is not trusted (${reason}); check that ca.pem belongs to the authority that signed it, and that it names this host`;
  }
  if (transport === "tcp" && broken) return `${reason}; if it uses TLS, give the directory of the certificates`;
  return reason;
}

/** The HTTP status of a daemon's answer; `undefined` if it did not answer. */
export function statusCode(error: unknown): number | undefined {
  const code = field(error, "statusCode");
  return typeof code === "number" ? code : undefined;
}

/** True if a daemon reports that something does not exist. */
export function isNotFound(error: unknown): boolean {
  return statusCode(error) === 404;
}

/**
 * Waits for a daemon's answer, with a time limit.
 *
 * @throws BackendUnavailableError if none has arrived after `milliseconds`.
 */
export async function answered<T>(answer: Promise<T>, what: string, milliseconds = 60_000): Promise<T> {
  const settled = new AbortController();
  const late = sleep(milliseconds, undefined, { signal: settled.signal }).then(() => {
    throw new BackendUnavailableError(`The Docker daemon did not answer within ${milliseconds / 1000} s (${what})`, {
      remedy: "Check whether the daemon is overloaded or stopped, then try again.",
    });
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    settled.abort();
    late.catch(() => {});
  }
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

const removeMs = 20_000;

/**
 * Ends and removes a container with its anonymous volumes, and waits until it is gone. Does nothing if it is gone
 * already.
 *
 * @throws the daemon's error, or BackendUnavailableError if it does not answer within 20 s.
 */
export async function removeContainer(container: Docker.Container): Promise<void> {
  for (const end = performance.now() + removeMs; ;) {
    try {
      await answered(container.remove({ force: true, v: true }), "container remove", removeMs);
      return;
    } catch (error) {
      if (isNotFound(error)) return;
      // It is already being removed, because it ended by itself.
      if (statusCode(error) !== 409 || performance.now() > end) throw error;
      await sleep(20);
    }
  }
}

const headerSize = 8;

/**
 * Splits Docker's combined stream of standard output and standard error: each frame starts with its stream (1 byte: 1
 * or 2), three zeros, and its length (4 bytes, big-endian). Chunks may end anywhere.
 */
export class OutputDemultiplexer {
  readonly #take: (stream: "stdout" | "stderr", bytes: Buffer) => void;
  readonly #header = Buffer.alloc(headerSize);
  #headerUsed = 0;
  #left = 0;

  constructor(take: (stream: "stdout" | "stderr", bytes: Buffer) => void) {
    this.#take = take;
  }

  push(chunk: Buffer): void {
    for (let rest = chunk; rest.length > 0;) {
      if (this.#left > 0) {
        const piece = rest.subarray(0, this.#left);
        this.#left -= piece.length;
        rest = rest.subarray(piece.length);
        this.#take(this.#header[0] === 2 ? "stderr" : "stdout", piece);
      } else {
        const taken = rest.copy(this.#header, this.#headerUsed);
        this.#headerUsed += taken;
        rest = rest.subarray(taken);
        if (this.#headerUsed < headerSize) return;
        this.#headerUsed = 0;
        this.#left = this.#header.readUInt32BE(4);
      }
    }
  }
}
