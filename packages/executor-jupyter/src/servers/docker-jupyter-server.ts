import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError } from "@fenced/core";
import { buildJupyterImage } from "./build-jupyter-image.ts";
import type { DockerAddress } from "./docker-address.ts";
import { JupyterContainer } from "./jupyter-container.ts";
import type { ServerLease } from "./jupyter-server.ts";
import { ManagedServer } from "./managed-server.ts";
import { openDocker } from "./open-docker.ts";
import { ServerClient } from "./server-client.ts";
import { serverAddress, type ServerAddress } from "./server-settings.ts";

/** Settings of `DockerJupyterServer`; none is required. */
export interface DockerJupyterServerOptions {
  /**
   * An image that has a Jupyter server or kernel gateway: it listens on port 8888 and takes its token from the variable
   * `TOKEN`, as images made for AutoGen do. Default: one is built, once, from the Dockerfile of this package.
   */
  readonly customImageName?: string;
  /** What the built image is made from; it needs Python. Default: `python:3.12-slim`. */
  readonly baseImage?: string;
  /** Packages that pip installs into the built image, as it takes them: `["matplotlib", "pandas>=2"]`. */
  readonly pipPackages?: readonly string[];
  /** Told what is happening while an image is built, line by line. Default: nobody. */
  readonly onProgress?: (line: string) => void;
  /** The container's name. Default: one that no other has. */
  readonly containerName?: string;
  /** Remove the container when it ends. Default: true. */
  readonly autoRemove?: boolean;
  /** End the container with the last executor, and when this program ends in whatever way. Default: true. */
  readonly stopContainer?: boolean;
  /** Environment variables of the container. */
  readonly dockerEnv?: Readonly<Record<string, string>>;
  /** The port of 127.0.0.1 on which the server is reached. Default: a free one. */
  readonly exposePort?: number;
  /** The server's token. Default: a random one. */
  readonly token?: string;
  /** A directory of this host that the blocks work in; made if missing. Default: one in the container. */
  readonly workDir?: string;
  /** The same directory as the Docker daemon names it, where that differs. Default: `workDir`. */
  readonly bindDir?: string;
  /** Milliseconds that the server may take to start, without the image's building. Default: 60,000. */
  readonly startTimeoutMs?: number;
  /** Where the Docker daemon is, as dockerode takes it. Default: `DOCKER_HOST`, or the usual socket. */
  readonly docker?: DockerAddress;
}

interface RunningServer {
  readonly address: ServerAddress;
  readonly container: ServerContainer;
}

/** What ends a server. Not `JupyterContainer` itself, whose types are those of dockerode, which not everybody has. */
interface ServerContainer {
  readonly ended: string | undefined;
  end(remove: boolean): Promise<void>;
  letGo(): void;
}

/** Where a bound `workDir` is in the container. */
const boundPath = "/workspace";

/**
 * A Jupyter server in a container, for any number of executors, reached on 127.0.0.1 only. It needs `dockerode`:
 * `npm install dockerode`. It starts with the first executor and ends with the last one; after `start()` of its own it
 * runs until `stop()`. If this program is killed, the container ends too.
 *
 * @example
 * await using server = new DockerJupyterServer({ pipPackages: ["matplotlib"], onProgress: console.log });
 * await using executor = new JupyterCodeExecutor({ server });
 */
export class DockerJupyterServer extends ManagedServer<RunningServer> {
  readonly isolation = "container" as const;
  readonly #options: DockerJupyterServerOptions;

  constructor(options: DockerJupyterServerOptions = {}) {
    super();
    this.#options = options;
  }

  /** How a component model writes this server down. */
  toJSON(): object {
    return { type: "docker", ...this.#options };
  }

  protected async open(): Promise<RunningServer> {
    const docker = await openDocker(this.#options.docker);
    const image = this.#options.customImageName ?? (await buildJupyterImage(docker, this.#options));
    const token = this.#options.token ?? randomBytes(32).toString("hex");
    const container = await JupyterContainer.start(docker, {
      image,
      token,
      env: this.#options.dockerEnv ?? {},
      autoRemove: this.#options.autoRemove ?? true,
      leashed: this.#options.stopContainer ?? true,
      ...(this.#options.containerName === undefined ? {} : { name: this.#options.containerName }),
      ...(this.#options.exposePort === undefined ? {} : { port: this.#options.exposePort }),
      ...(await this.#bind()),
    });
    const address = serverAddress({ baseUrl: `http://127.0.0.1:${container.port}/`, token });
    try {
      await this.#untilReady(address, container);
      return { address, container };
    } catch (error) {
      await container.remove();
      throw error;
    }
  }

  protected async close({ container }: RunningServer): Promise<void> {
    if (this.#options.stopContainer ?? true) await container.end(this.#options.autoRemove ?? true);
    else container.letGo();
  }

  protected whyEnded({ container }: RunningServer): string | undefined {
    return container.ended;
  }

  protected lease({ address }: RunningServer): Pick<ServerLease, "address" | "workspace"> {
    return { address, ...(this.#options.workDir === undefined ? {} : { workspace: boundPath }) };
  }

  async #bind(): Promise<{ readonly bind?: string }> {
    const { workDir, bindDir } = this.#options;
    if (workDir === undefined) return {};
    await mkdir(workDir, { recursive: true });
    return { bind: `${bindDir ?? path.resolve(workDir)}:${boundPath}` };
  }

  async #untilReady(address: ServerAddress, container: JupyterContainer): Promise<void> {
    const timeoutMs = this.#options.startTimeoutMs ?? 60_000;
    const giveUp = performance.now() + timeoutMs;
    await using client = new ServerClient(address);
    while (performance.now() < giveUp && container.ended === undefined) {
      const response = await client.send("api/kernelspecs", { deadlineMs: 5000 }).catch(() => undefined);
      await response?.body?.cancel();
      if (response?.ok === true) return;
      await sleep(100);
    }
    const reason = container.ended ?? `it does not answer after ${timeoutMs} ms`;
    throw new BackendUnavailableError(
      `The Jupyter server in Docker did not come up: ${reason}\n${await container.log()}\n`,
      {
        remedy: "The image must listen on port 8888 and take its token from the variable TOKEN.",
      },
    );
  }
}
