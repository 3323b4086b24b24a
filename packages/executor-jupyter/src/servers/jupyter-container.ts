import { Duplex } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import type Docker from "dockerode";
import type { Container } from "dockerode";

/** How a container is started. */
export interface ContainerSettings {
  readonly image: string;
  readonly token: string;
  readonly env: Readonly<Record<string, string>>;
  readonly name?: string;
  /** Of 127.0.0.1. Default: a free one. */
  readonly port?: number;
  /** `host path:container path`. */
  readonly bind?: string;
  readonly autoRemove: boolean;
  /** Whether the container ends with this program. */
  readonly leashed: boolean;
}

const innerPort = "8888/tcp";

/** Runs the image's own command, and ends it when the standard input that this program holds open ends. */
const leash = `exec 3<&0
"$@" </dev/null &
server=$!
(cat <&3 >/dev/null; kill -KILL $server) &
wait $server`;

/** A container in which a Jupyter server runs. */
export class JupyterContainer {
  readonly port: number;
  readonly #container: Container;
  readonly #input: NodeJS.ReadWriteStream | undefined;
  readonly #token: string;
  #ended: string | undefined;

  private constructor(container: Container, port: number, input: NodeJS.ReadWriteStream | undefined, token: string) {
    this.port = port;
    this.#container = container;
    this.#input = input;
    this.#token = token;
    // The attached stream ends with the container; a container without one is asked when a call fails.
    input?.on("close", () => this.#end());
    input?.on("end", () => this.#end());
    input?.on("error", () => this.#end());
    input?.resume();
  }

  /** @throws BackendUnavailableError if Docker does not start it. */
  static async start(docker: Docker, settings: ContainerSettings): Promise<JupyterContainer> {
    let container: Container | undefined;
    try {
      container = await docker.createContainer(await containerOptions(docker, settings));
      const attach = { stream: true, stdin: true, stdout: true, hijack: true };
      const input = settings.leashed ? await container.attach(attach) : undefined;
      await container.start();
      const { NetworkSettings, State } = await container.inspect();
      const port = Number(NetworkSettings.Ports[innerPort]?.[0]?.HostPort ?? 0);
      const started = new JupyterContainer(container, port, input, settings.token);
      if (!State.Running) started.#end();
      return started;
    } catch (cause) {
      await container?.remove({ force: true }).catch(() => {});
      const said = String(cause).replaceAll(settings.token, "<token>");
      throw new BackendUnavailableError(`The container of ${settings.image} cannot be started: ${said}`, {
        remedy: "See that the image exists (docker images) and that name and port are free.",
        cause,
      });
    }
  }

  /** Why it ended, once it has. */
  get ended(): string | undefined {
    return this.#ended;
  }

  /** The last lines that it wrote, without the token. */
  async log(): Promise<string> {
    const log = await this.#container
      .logs({ stdout: true, stderr: true, tail: 20, follow: false })
      .catch(() => undefined);
    return (log ? textOfFrames(log) : "").replaceAll(this.#token, "<token>");
  }

  /** Ends it. */
  async end(remove: boolean): Promise<void> {
    if (remove) return this.remove();
    await this.#container.kill().catch(() => {});
    this.letGo();
  }

  /** Ends and removes it, also if it ended by itself. */
  async remove(): Promise<void> {
    await this.#container.remove({ force: true, v: true }).catch((error: unknown) => {
      if (!/no such container|already in progress/i.test(String(error))) throw error;
    });
    this.letGo();
  }

  /** Holds it no more. */
  letGo(): void {
    this.#end();
    this.#input?.end();
    if (this.#input instanceof Duplex) this.#input.destroy();
  }

  #end(): void {
    this.#ended ??= "the container ended";
  }
}

async function containerOptions(docker: Docker, settings: ContainerSettings): Promise<Docker.ContainerCreateOptions> {
  const { Config } = await docker.getImage(settings.image).inspect();
  const own = [...words(Config.Entrypoint), ...words(Config.Cmd)];
  const env = { ...settings.env, TOKEN: settings.token };
  const stdin = settings.leashed;
  return {
    Image: settings.image,
    ...(settings.name === undefined ? {} : { name: settings.name }),
    ...(stdin ? { Entrypoint: ["/bin/sh", "-c", leash, "fenced"], Cmd: own } : {}),
    Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ExposedPorts: { [innerPort]: {} },
    Labels: { "io.fenced.executor": "jupyter" },
    OpenStdin: stdin,
    StdinOnce: stdin,
    AttachStdin: stdin,
    AttachStdout: stdin,
    HostConfig: {
      AutoRemove: settings.autoRemove,
      Init: true,
      PortBindings: { [innerPort]: [{ HostIp: "127.0.0.1", HostPort: String(settings.port ?? 0) }] },
      ...(settings.bind === undefined ? {} : { Binds: [settings.bind] }),
    },
  };
}

/** The text of a log: frames of eight bytes, whose last four say how many bytes of text follow. */
function textOfFrames(log: Buffer): string {
  const pieces: Buffer[] = [];
  for (let start = 0; start + 8 <= log.length;) {
    const end = start + 8 + log.readUInt32BE(start + 4);
    pieces.push(log.subarray(start + 8, end));
    start = end;
  }
  return Buffer.concat(pieces).toString();
}

function words(value: string | readonly string[] | undefined | null): readonly string[] {
  if (value === undefined || value === null) return [];
  return typeof value === "string" ? [value] : value;
}
