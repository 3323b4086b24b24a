import type { NetworkPolicy } from "@fenced/core";
import {
  callbackOption,
  environmentOption,
  networkPolicyOption,
  optionsSchema,
  stringsOption,
  timeLimitOption,
  type OptionSchemas,
} from "@fenced/core/options";
import { z } from "zod";

/** Settings of `DockerJupyterServer`; none is required. The Docker options are those of `@fenced/executor-docker`. */
export interface DockerJupyterServerOptions {
  /**
   * An image with a Jupyter server or kernel gateway that listens on port 8888 and takes its token from the variable
   * `TOKEN`, as images made for AutoGen do. Default: one is built, once, from this package's Dockerfile.
   */
  readonly image?: string | undefined;
  /** Called with the progress of a download of `image`. Cannot be dumped. */
  readonly onPullProgress?:
    | ((progress: {
        readonly image: string;
        readonly status: string;
        readonly layer?: string;
        readonly current?: number;
        readonly total?: number;
      }) => void)
    | undefined;
  /** The base of the built image; it needs Python. Default: `python:3.12-slim`. */
  readonly baseImage?: string | undefined;
  /** Packages that pip installs into the built image, in pip's syntax: `["matplotlib", "pandas>=2"]`. */
  readonly pipPackages?: readonly string[] | undefined;
  /** Called with each line of output while an image is built. Cannot be dumped. */
  readonly onProgress?: ((line: string) => void) | undefined;
  /** The container's name. Default: `fenced-jupyter-` and a unique id. */
  readonly containerName?: string | undefined;
  /** Remove the container when it ends. Default: true. */
  readonly autoRemove?: boolean | undefined;
  /** End the container with the last executor, and when this program ends, however that happens. Default: true. */
  readonly stopContainer?: boolean | undefined;
  /** Labels of the container, to find it by: `docker ps --filter label=tenant=42`. Default: Fenced's own. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Environment variables of the container. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** The port on 127.0.0.1 on which the server is reachable. Default: a free one. */
  readonly exposePort?: number | undefined;
  /** The server's token. Default: a random one. */
  readonly token?: string | undefined;
  /** A directory of this host that the blocks work in; created if missing. Default: one in the container. */
  readonly workDir?: string | undefined;
  /** The daemon's path of the same directory, if it differs. Default: `workDir`. */
  readonly bindDir?: string | undefined;
  /** Milliseconds that the server may take to start, not counting the image build. Default: 60,000. */
  readonly startTimeoutMs?: number | undefined;
  /**
   * No capabilities, no new privileges, limits on memory and processes, and no root: the image's own user, else the
   * owner of `workDir`, else nobody (65534). Default: true.
   */
  readonly hardened?: boolean | undefined;
  /** Memory limit in bytes, including swap; at least 6 MiB. Default: 1 GiB if hardened, else no limit. */
  readonly memoryBytes?: number | undefined;
  /** CPU limit; fractions are allowed (1.5). Default: no limit. */
  readonly cpus?: number | undefined;
  /** Maximum number of processes and threads. Default: 512 if hardened, else no limit. */
  readonly pidsLimit?: number | undefined;
  /** `user`, `uid` or `uid:gid` in the container. Default: see `hardened`. */
  readonly user?: string | undefined;
  /**
   * Mount the root filesystem read-only; only `/workspace` and `/tmp` are writable. `/tmp` is then in memory, at most half of
   * `memoryBytes`. For images that work in `/workspace`, as the built one does. Default: false.
   */
  readonly readOnlyRootFilesystem?: boolean | undefined;
  /**
   * What code may connect to. `"none"`: its own loopback; `"open"`: what the container's network reaches; `{ allow:
   * ["pypi.org:443"] }`: only these hosts, through a proxy in this process. Unless it is `"open"`, the container has no
   * network, its image needs Python as `python3`, and `stopContainer` cannot be false. Executors that share the server
   * each report all of its refusals. Default: `{ allow: packageIndexes }` if the container is hardened,
   * `dockerNetwork` is not set and `stopContainer` is not false, otherwise `"open"`.
   */
  readonly network?: NetworkPolicy | undefined;
  /**
   * The name of the daemon's network to put the container in, which must not be an internal one; implies
   * `network: "open"`. Default: the daemon's default bridge.
   */
  readonly dockerNetwork?: string | undefined;
  /**
   * The daemon, as in `DOCKER_HOST` (`"unix:///run/docker.sock"`), or with certificates. With an open
   * network it must be on this machine, because its ports are published there. Default: found automatically.
   */
  readonly docker?:
    | string
    | { readonly host: string; readonly certPath?: string; readonly tlsVerify?: boolean }
    | undefined;
}

/** The schema of each option. */
export const dockerServerOptions: OptionSchemas<DockerJupyterServerOptions> = {
  image: z.string().min(1).exactOptional(),
  onPullProgress: callbackOption<NonNullable<DockerJupyterServerOptions["onPullProgress"]>>().exactOptional(),
  baseImage: z.string().min(1).exactOptional(),
  pipPackages: z.array(z.string()).exactOptional(),
  onProgress: callbackOption<(line: string) => void>().exactOptional(),
  containerName: z.string().min(1).exactOptional(),
  autoRemove: z.boolean().exactOptional(),
  stopContainer: z.boolean().exactOptional(),
  labels: stringsOption.exactOptional(),
  env: environmentOption.exactOptional(),
  exposePort: z.int().min(0).max(65_535).exactOptional(),
  token: z.string().min(1).exactOptional(),
  workDir: z.string().min(1).exactOptional(),
  bindDir: z.string().min(1).exactOptional(),
  startTimeoutMs: timeLimitOption.exactOptional(),
  hardened: z.boolean().exactOptional(),
  memoryBytes: z.int().min(6_291_456).exactOptional(),
  cpus: z.number().positive().exactOptional(),
  pidsLimit: z.int().min(8).exactOptional(),
  user: z.string().min(1).exactOptional(),
  readOnlyRootFilesystem: z.boolean().exactOptional(),
  network: networkPolicyOption("; for a network of the daemon, use `dockerNetwork`").exactOptional(),
  dockerNetwork: z.string().min(1).exactOptional(),
  docker: z
    .union([
      z.string().min(1),
      z.strictObject({
        host: z.string(),
        certPath: z.string().exactOptional(),
        tlsVerify: z.boolean().exactOptional(),
      }),
    ])
    .exactOptional(),
};

/** Validates the options. */
export const dockerServerSchema: z.ZodType<DockerJupyterServerOptions> = optionsSchema(dockerServerOptions).check(
  ({ value, issues }) => {
    const { network, dockerNetwork, stopContainer } = value;
    if (network === undefined || network === "open") return;
    const refuse = (name: string, input: unknown, message: string) =>
      issues.push({ code: "custom", path: [name], input, message });
    if (dockerNetwork !== undefined) {
      refuse(
        "dockerNetwork",
        dockerNetwork,
        'needs `network: "open"`: any other policy leaves the container without a network',
      );
    }
    if (stopContainer === false) {
      refuse(
        "stopContainer",
        stopContainer,
        'needs `network: "open"`: otherwise the server is reachable only through this program',
      );
    }
  },
);
