import { randomBytes } from "node:crypto";
import { stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { BackendUnavailableError, type ExecutorCapabilities, type NetworkDecision } from "@fenced/core";
import { networkReach } from "@fenced/core/network";
import { checkOptions } from "@fenced/core/options";
import { makeDirectories } from "@fenced/core/runtime";
import type { Daemon } from "@fenced/docker-daemon";
import { absolutePaths } from "@fenced/executor-kit";
import { buildJupyterImage } from "./build-jupyter-image.ts";
import type { DaemonPackage } from "./container-gate.ts";
import { type ContainerSettings, networkOf, workspacePath } from "./create-jupyter-container.ts";
import { dockerServerSchema, type DockerJupyterServerOptions } from "./docker-server-options.ts";
import { JupyterContainer } from "./jupyter-container.ts";
import type { ServerLease } from "./jupyter-server.ts";
import { ManagedServer } from "./managed-server.ts";
import { ServerClient } from "./server-client.ts";
import { serverAddress, type ServerAddress } from "./server-settings.ts";

interface RunningServer {
  readonly address: ServerAddress;
  readonly container: ServerContainer;
}

/** The part of `JupyterContainer` used here; the class itself has types from an optional package. */
interface ServerContainer {
  readonly systemKernel: ExecutorCapabilities["kernel"];
  readonly ended: string | undefined;
  collectRefusals(): () => readonly NetworkDecision[];
  outOfMemory(options: DockerJupyterServerOptions): Promise<string | undefined>;
  end(remove: boolean): Promise<void>;
  letGo(): Promise<void>;
}

/**
 * A Jupyter server in a container, for any number of executors, reachable on 127.0.0.1 only. Executors that share it are
 * not separated: their kernels run as one user, and code can read and end all of them, so users who must not see each
 * other need a server each. It is hardened by default and needs `npm install @fenced/docker-daemon`. It starts with the first executor and stops with the last one; if you
 * call its own `start()`, it runs until `stop()`. If this program is killed, the container ends too.
 *
 * @example
 * await using server = new DockerJupyterServer({ pipPackages: ["matplotlib"], onProgress: console.log });
 * await using executor = new JupyterCodeExecutor({ server });
 */
export class DockerJupyterServer extends ManagedServer<RunningServer> {
  readonly isolation = "container" as const;
  /** As they were given, for component models. */
  readonly #given: DockerJupyterServerOptions;
  readonly #options: DockerJupyterServerOptions;

  /** @throws InvalidInputError if an option is unknown or wrong. */
  constructor(options: DockerJupyterServerOptions = {}) {
    super();
    this.#given = checkOptions(dockerServerSchema, options, "DockerJupyterServer");
    const { docker } = this.#given;
    this.#options = {
      ...absolutePaths(this.#given, ["workDir"]),
      ...(typeof docker === "object" && { docker: absolutePaths(docker, ["certPath"]) }),
    };
  }

  get network(): ExecutorCapabilities["network"] {
    return networkReach(networkOf(this.#options).policy).network;
  }

  /** This server as it appears in a component model. */
  toJSON(): object {
    return { type: "docker", ...this.#given };
  }

  protected async open(): Promise<RunningServer> {
    const loaded = await loadDaemonPackage();
    const daemon = await loaded.findDaemon(this.#options.docker);
    const token = this.#options.token ?? randomBytes(32).toString("hex");
    const container = await this.#start(loaded, daemon, token).catch((error: unknown) => {
      daemon.release();
      throw error;
    });
    const address = serverAddress({ baseUrl: `http://127.0.0.1:${container.port}/`, token });
    try {
      await this.#untilReady(address, container);
      return { address, container };
    } catch (error) {
      await container.end(true);
      throw error;
    }
  }

  protected async close({ container }: RunningServer): Promise<void> {
    if (this.#options.stopContainer ?? true) await container.end(this.#options.autoRemove ?? true);
    else await container.letGo();
  }

  protected whyEnded({ container }: RunningServer): string | undefined {
    return container.ended;
  }

  protected lease({ address, container }: RunningServer): Omit<ServerLease, "ended" | "release" | "host"> {
    const { workDir } = this.#options;
    const collectRefusals = () => container.collectRefusals();
    return {
      address,
      collectRefusals,
      outOfMemory: () => container.outOfMemory(this.#options),
      systemKernel: container.systemKernel,
      ...(workDir === undefined ? {} : { workspace: workspacePath, bound: workDir }),
    };
  }

  async #start(loaded: DaemonPackage, daemon: Daemon, token: string): Promise<JupyterContainer> {
    const options = this.#options;
    const { docker } = daemon;
    if (options.image !== undefined) {
      const request = { image: options.image, pull: "missing" as const, onProgress: options.onPullProgress };
      await loaded.ensureImage(docker, request, new AbortController().signal);
    }
    const image = options.image ?? (await buildJupyterImage(docker, options));
    return JupyterContainer.start(loaded, daemon, { options, image, token, ...(await this.#bind()) });
  }

  async #bind(): Promise<Pick<ContainerSettings, "bind">> {
    const { workDir, bindDir } = this.#options;
    if (workDir === undefined) return {};
    await makeDirectories(workDir);
    const { uid, gid } = await stat(workDir);
    return { bind: { source: bindDir ?? workDir, owner: { uid, gid } } };
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
    const reason = container.ended ?? `it did not answer within ${timeoutMs} ms`;
    throw new BackendUnavailableError(
      `The Jupyter server in Docker did not start: ${reason}\n${await container.log()}\n`,
      {
        remedy: "Make sure that the image's server listens on port 8888 and takes its token from the variable TOKEN.",
      },
    );
  }
}

async function loadDaemonPackage(): Promise<DaemonPackage> {
  try {
    return await import("@fenced/docker-daemon");
  } catch (cause) {
    throw new BackendUnavailableError("DockerJupyterServer needs @fenced/docker-daemon, which is not installed", {
      remedy: "Install it: npm install @fenced/docker-daemon",
      cause,
    });
  }
}
