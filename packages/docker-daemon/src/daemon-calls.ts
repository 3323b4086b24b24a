import { Duplex, Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import type Docker from "dockerode";
import type { ContainerCreateOptions } from "dockerode";

/** The client of dockerode. */
export type DockerClient = Docker;
export type Container = Docker.Container;
export type Exec = Docker.Exec;
export type { ContainerCreateOptions, HostConfig, MountSettings } from "dockerode";

/** The message of a daemon's error or of a broken connection. */
export function dockerReason(error: unknown): string {
  const json = field(error, "json");
  const said = field(json, "message") ?? field(json, "cause");
  if (typeof said === "string" && said !== "") return said.trim();
  if (error instanceof AggregateError) return error.errors.map(dockerReason).join(", ");
  if (!(error instanceof Error)) return String(error);
  // What the client adds to the daemon's words.
  const [, given = error.message] = /^\(HTTP code \d+\) [a-z ]+ - (.*\S)/s.exec(error.message) ?? [];
  return given.trim();
}

/** Why a daemon cannot be reached over a network, including what a failed TLS handshake means. */
export function connectionReason(error: unknown, transport: string): string {
  const reason = dockerReason(error);
  const given = field(error, "code");
  const code = typeof given === "string" ? given : "";
  const broken = code === "ECONNRESET" || code === "EPIPE";
  if (transport === "tls" && (broken || code.startsWith("ERR_SSL_"))) {
    // OpenSSL adds the location in its source code.
    const said = /SSL routines:[^:]*:([^:]+):/.exec(reason)?.[1] ?? reason;
    return `it refused the TLS connection (${said}); check that cert.pem and key.pem exist and are signed by an authority that it trusts`;
  }
  if (/CERT|UNABLE_TO_|SELF_SIGNED/.test(code)) {
    return `its certificate is not trusted (${reason}); check that ca.pem belongs to the authority that signed it, and that it names this host`;
  }
  if (transport === "tcp" && broken) {
    return `${reason}; if it uses TLS, set \`certPath\` or DOCKER_CERT_PATH to the directory with the certificates`;
  }
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

/**
 * Creates a container without starting it.
 *
 * @throws the daemon's error, or BackendUnavailableError if it does not answer within 60 s.
 */
export async function createContainer(docker: DockerClient, options: ContainerCreateOptions): Promise<Container> {
  // Passed separately, because the client would otherwise also put all options into the URL.
  const request: ContainerCreateOptions & { readonly _query: object; readonly _body: object } = {
    _query: { name: options.name },
    _body: options,
  };
  const created = docker.createContainer(request);
  try {
    return await answered(created, "container create");
  } catch (error) {
    // If the daemon answers too late, it has created the container anyway.
    created.then(removeContainer).catch(() => {});
    throw error;
  }
}

const removeMs = 20_000;

/**
 * Ends and removes a container with its anonymous volumes, and waits until it is gone. Does nothing if it is already
 * gone.
 *
 * @throws the daemon's error, or BackendUnavailableError if it does not answer within 20 s.
 */
export async function removeContainer(container: Container): Promise<void> {
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

/** The standard streams of a program in a container. */
export interface ProgramStreams {
  readonly stdin: Duplex;
  readonly stdout: Readable;
  readonly stderr: Readable;
}

/**
 * Runs a program in a container.
 *
 * @param user - as in `docker exec --user`. Default: the container's user.
 * @returns its connection, for `splitOutputs`.
 * @throws the daemon's error, or BackendUnavailableError if it does not answer within 60 s.
 */
export async function execProgram(container: Container, command: readonly string[], user?: string): Promise<Duplex> {
  const create = container.exec({
    Cmd: [...command],
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    ...(user === undefined ? {} : { User: user }),
  });
  const exec = await answered(create, "exec create");
  return asDuplex(await answered(exec.start({ hijack: true, stdin: true }), "exec start"));
}

/** Splits the interleaved outputs of a daemon connection into streams, without copying. */
export function splitOutputs(connection: Duplex): ProgramStreams {
  const [stdout, stderr] = [new Readable({ read: () => {} }), new Readable({ read: () => {} })];
  const demultiplexer = new OutputDemultiplexer((name, bytes) => (name === "stdout" ? stdout : stderr).push(bytes));
  connection.on("data", (chunk: Buffer) => {
    try {
      demultiplexer.push(chunk);
    } catch (error) {
      stdout.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  });
  for (const end of ["end", "close"]) {
    connection.once(end, () => {
      stdout.push(null);
      stderr.push(null);
    });
  }
  return { stdin: connection, stdout, stderr };
}

/** The connection that the client hands over when it is asked to hijack one. */
export function asDuplex(stream: NodeJS.ReadWriteStream): Duplex {
  if (stream instanceof Duplex) return stream;
  throw new Error("the Docker client did not hand over its connection");
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

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
