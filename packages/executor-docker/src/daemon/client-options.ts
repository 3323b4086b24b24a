import { readFileSync } from "node:fs";
import path from "node:path";
import { InvalidInputError } from "@fenced/core";
import type { DockerOptions } from "dockerode";
import type { DockerConnection } from "./docker-connection.ts";

/**
 * A connection as dockerode takes it.
 *
 * @throws InvalidInputError if the address cannot be understood or a certificate cannot be read.
 */
export function clientOptions(connection: DockerConnection): DockerOptions {
  const { host, ...tls } = typeof connection === "string" ? { host: connection } : connection;
  const socket = /^(?:unix|npipe):\/\/(.+)$/.exec(host)?.[1] ?? (path.isAbsolute(host) ? host : undefined);
  if (socket !== undefined) return { socketPath: socket.replaceAll("/", path.sep) };
  const url = parse(host);
  const protocol = url.protocol.slice(0, -1);
  const hostname = url.hostname.replaceAll(/^\[|\]$/g, "");
  if (protocol === "ssh") {
    return {
      protocol,
      host: hostname,
      port: url.port === "" ? 22 : Number(url.port),
      ...(url.username === "" ? {} : { username: decodeURIComponent(url.username) }),
      ...(process.env["SSH_AUTH_SOCK"] === undefined ? {} : { sshOptions: { agent: process.env["SSH_AUTH_SOCK"] } }),
    };
  }
  const certificates = readCertificates(tls.certPath, tls.tlsVerify ?? true);
  const secure = protocol === "https" || certificates !== undefined;
  return {
    protocol: secure ? "https" : "http",
    host: hostname,
    port: url.port === "" ? (secure ? 2376 : 2375) : Number(url.port),
    ...certificates,
  };
}

function parse(host: string): URL {
  const url = URL.canParse(host) ? new URL(host) : undefined;
  if (url && ["tcp:", "http:", "https:", "ssh:"].includes(url.protocol) && url.hostname !== "") return url;
  throw new InvalidInputError(`${JSON.stringify(host)} is no address of a Docker daemon`, {
    remedy: "Write it as unix:///path, npipe:////./pipe/name, tcp://host:port, https://host:port or ssh://user@host.",
  });
}

function readCertificates(directory: string | undefined, verify: boolean): object | undefined {
  if (directory === undefined) return undefined;
  try {
    const [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map((name) => readFileSync(path.join(directory, name)));
    return { ca, cert, key, rejectUnauthorized: verify };
  } catch (cause) {
    throw new InvalidInputError(`The certificates in ${directory} cannot be read: ${String(cause)}`, {
      remedy: "Give the directory with ca.pem, cert.pem and key.pem.",
      cause,
    });
  }
}
