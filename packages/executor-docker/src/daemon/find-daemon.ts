import { existsSync } from "node:fs";
import type { Agent } from "node:http";
import { homedir } from "node:os";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import Docker, { type DockerOptions } from "dockerode";
import { clientOptions, type ClientOptions } from "./client-options.ts";
import { addressOf, connectionFromEnvironment, type DockerConnection } from "./docker-connection.ts";
import { currentContext } from "./docker-context.ts";
import { answered, connectionReason, dockerReason } from "./docker-error.ts";
import { SshAgent } from "./ssh-agent.ts";

/** A daemon that answered. */
export interface Daemon {
  readonly docker: Docker;
  /** As `DOCKER_HOST` would have it. */
  readonly address: string;
  /** The path of its socket on this host; missing if it is reached otherwise. */
  readonly socketPath?: string;
  /** Closes the connections that wait to be used again. */
  release(): void;
}

/** A way to find a daemon. */
interface Strategy {
  /** What is looked at, for the message. */
  readonly name: string;
  /** Where the daemon should be; `undefined`: this says nothing, and the next strategy is asked. */
  readonly connection: () => DockerConnection | undefined;
  /** Somebody chose this daemon, so no other one is used in its place. */
  readonly chosen: boolean;
}

const answerMs = 5000;
const sshAnswerMs = 15_000;

/**
 * Finds the daemon: the one given, else that of `DOCKER_HOST`, of the current Docker context, at the default socket, at
 * a rootless socket, or Podman's.
 *
 * @throws BackendUnavailableError that lists what was tried and what each said.
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
        "Start Docker or Podman (`podman system service`), see that this user may open its socket, or say where it is: option `docker`, or DOCKER_HOST.",
    },
  );
}

const notSet = "not set";
const missing = "there is none";

async function tryStrategy({ connection: find }: Strategy): Promise<Daemon | string> {
  try {
    const connection = find();
    if (connection === undefined) return notSet;
    const options = clientOptions(connection);
    const { socketPath } = options.client;
    if (socketPath !== undefined && process.platform !== "win32" && !existsSync(socketPath)) {
      return `${socketPath}: ${missing}`;
    }
    return await ping(addressOf(connection), options);
  } catch (error) {
    return dockerReason(error);
  }
}

async function ping(address: string, { client, agent }: ClientOptions): Promise<Daemon> {
  const docker = makeClient({ ...client, agent });
  const { socketPath } = client;
  try {
    await answered(docker.ping(), "ping", agent instanceof SshAgent ? sshAnswerMs : answerMs);
  } catch (error) {
    agent.destroy();
    throw new Error(`${address}: ${connectionReason(error, client.protocol)}`, { cause: error });
  }
  return { docker, address, release: () => agent.destroy(), ...(socketPath === undefined ? {} : { socketPath }) };
}

/** The client reads these variables itself, and would mix them with what was chosen. */
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

function strategies(given: DockerConnection | undefined): Strategy[] {
  if (given !== undefined) return [{ name: "the option `docker`", connection: () => given, chosen: true }];
  const host = process.env["DOCKER_HOST"];
  const fromHost = host === undefined || host === "" ? undefined : connectionFromEnvironment(host);
  return [
    { name: "DOCKER_HOST", connection: () => fromHost, chosen: true },
    { name: "the current Docker context", connection: () => currentContext()?.connection, chosen: true },
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
