import { existsSync, readFileSync } from "node:fs";
import { Agent } from "node:http";
import { Agent as TlsAgent } from "node:https";
import path from "node:path";
import { InvalidInputError } from "@fenced/core";
import type { DockerOptions } from "dockerode";
import type { DockerConnection } from "./docker-connection.ts";
import { SshAgent } from "./ssh-agent.ts";

/** A connection as dockerode takes it. */
export interface ClientOptions {
  readonly client: DockerOptions;
  /** Makes the connections, and holds those that wait to be used again. */
  readonly agent: Agent;
}

/**
 * A connection as dockerode takes it.
 *
 * @throws InvalidInputError if the address cannot be understood or a certificate cannot be read.
 */
export function clientOptions(connection: DockerConnection): ClientOptions {
  const { host, ...tls } = typeof connection === "string" ? { host: connection } : connection;
  const socket = /^(?:unix|npipe):\/\/(.+)$/.exec(host)?.[1] ?? (path.isAbsolute(host) ? host : undefined);
  if (socket !== undefined) {
    return { client: { socketPath: socket.replaceAll("/", path.sep) }, agent: new Agent({ keepAlive: true }) };
  }
  const url = parse(host);
  if (url.protocol === "ssh:") return sshOptions(url);
  const certificates = readCertificates(tls.certPath);
  const secure = url.protocol === "https:" || certificates !== undefined;
  return {
    client: {
      protocol: secure ? "https" : "http",
      host: hostOf(url),
      port: url.port === "" ? (secure ? 2376 : 2375) : Number(url.port),
    },
    agent: secure
      ? new TlsAgent({ keepAlive: true, ...certificates, rejectUnauthorized: tls.tlsVerify ?? true })
      : new Agent({ keepAlive: true }),
  };
}

function sshOptions(url: URL): ClientOptions {
  const host = hostOf(url);
  const socket = decodeURIComponent(url.pathname);
  const agent = new SshAgent({
    host,
    ...(url.port === "" ? {} : { port: Number(url.port) }),
    ...(url.username === "" ? {} : { user: decodeURIComponent(url.username) }),
    ...(socket === "" || socket === "/" ? {} : { socket }),
  });
  // The client speaks HTTP, over whatever the agent connects it with; the name is for the request's headers alone.
  return { client: { protocol: "http", host, port: 80 }, agent };
}

function hostOf(url: URL): string {
  return url.hostname.replaceAll(/^\[|\]$/g, "");
}

function parse(host: string): URL {
  const url = URL.canParse(host) ? new URL(host) : undefined;
  const known = url !== undefined && ["tcp:", "http:", "https:", "ssh:"].includes(url.protocol) && url.hostname !== "";
  if (!known) {
    throw new InvalidInputError(`${JSON.stringify(host)} is no address of a Docker daemon`, {
      remedy: "Write it as unix:///path, npipe:////./pipe/name, tcp://host:port, https://host:port or ssh://user@host.",
    });
  }
  if (url.password !== "") {
    throw new InvalidInputError("The address of the Docker daemon has a password in it, which cannot be used", {
      remedy: "Leave it out, and let ssh log in with a key.",
    });
  }
  return url;
}

/** What `certPath` has: an authority to trust, a certificate to show with its key, or both, as in a Docker context. */
function readCertificates(directory: string | undefined): object | undefined {
  if (directory === undefined) return undefined;
  const files = { ca: "ca.pem", cert: "cert.pem", key: "key.pem" };
  try {
    const found = Object.entries(files).filter(([, name]) => existsSync(path.join(directory, name)));
    if (found.length === 0) throw new Error("there is no ca.pem, cert.pem or key.pem in it");
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
