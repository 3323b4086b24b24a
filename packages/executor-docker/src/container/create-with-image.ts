import { InvalidInputError } from "@fenced/core";
import {
  type Container,
  type ContainerCreateOptions,
  type ContainerLeash,
  createContainer,
  createWithFilter,
  type Daemon,
  daemonFacts,
  dockerReason,
  ensureImage,
  isNotFound,
  isPath,
  statusCode,
} from "@fenced/docker-daemon";
import type { SessionDirectories } from "@fenced/executor-kit";
import type { SessionAddress } from "@fenced/executor-kit/supervisor";
import type { DockerExecutorOptions } from "../docker-executor-options.ts";
import type { LeftContainer } from "../left-session.ts";
import { defaultImage } from "./container-options.ts";

/** Settings that all containers of a session share. */
export interface ContainerRequest {
  readonly options: DockerExecutorOptions;
  /** The executor's id. */
  readonly owner: string;
  readonly name: string;
  readonly daemon: Daemon;
  readonly directories: SessionDirectories;
  /** Removes the session's containers if this program dies. */
  readonly leash: ContainerLeash;
  /** A directory of the session in the container. */
  readonly directory: string;
  /** Programs that the supervisor looks for. */
  readonly programs: readonly string[];
  /** How to reach a session that outlives this program. Default: it does not. */
  readonly address?: SessionAddress;
  /** The session to connect to. Default: a new one. */
  readonly left?: LeftContainer;
}

/**
 * Creates a container, and pulls its image if the daemon lacks it.
 *
 * @param bound - the container mounts the work directory.
 * @throws InvalidInputError if its name is taken.
 */
export async function createWithImage(
  request: ContainerRequest,
  settings: ContainerCreateOptions,
  bound: boolean,
  signal: AbortSignal,
): Promise<Container> {
  const { options, daemon, name, leash } = request;
  const facts = await daemonFacts(daemon);
  const create = (given: ContainerCreateOptions) => leash.creating(() => createContainer(daemon.docker, given));
  const mounts = bound || Object.keys(options.extraVolumes ?? {}).some(isPath);
  const shares = mounts && options.hardened !== false;
  const attempt = () => createWithFilter(daemon, facts, settings, shares, create);
  const image = { image: imageOf(request), pull: options.pull ?? "missing", onProgress: options.onPullProgress };
  if (image.pull === "always") await ensureImage(daemon.docker, image, signal);
  try {
    // Inspect the image only if the daemon turns out to lack it.
    return await attempt().catch(async (error: unknown) => {
      if (!isNotFound(error)) throw error;
      await ensureImage(daemon.docker, image, signal);
      return attempt();
    });
  } catch (cause) {
    if (statusCode(cause) !== 409 && !/name.* in use/i.test(dockerReason(cause))) throw cause;
    throw new InvalidInputError(`The container name "${name}" is taken`, {
      remedy: `Choose another \`containerName\`, set \`reuse: true\` to use that one, or remove it: docker rm -f ${name}`,
      cause,
    });
  }
}

/** The image of a session. */
export function imageOf({ options }: ContainerRequest): string {
  return options.image ?? defaultImage;
}
