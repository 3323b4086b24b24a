import { BackendUnavailableError } from "@fenced/core";
import type Docker from "dockerode";
import type { DockerAddress } from "./docker-address.ts";

/**
 * A client of the Docker daemon, which answers.
 *
 * @throws BackendUnavailableError if dockerode is not installed, or no daemon answers.
 */
export async function openDocker(address: DockerAddress | undefined): Promise<Docker> {
  const docker = await loadDocker(address);
  try {
    await docker.ping();
    return docker;
  } catch (cause) {
    const place = process.env["DOCKER_HOST"] ?? "the usual socket";
    throw new BackendUnavailableError(`No Docker daemon answers (${address ? "as given" : place}): ${String(cause)}`, {
      remedy: "Start Docker, see that this user may use it, or name the daemon in `docker` or DOCKER_HOST.",
      cause,
    });
  }
}

async function loadDocker(address: DockerAddress | undefined): Promise<Docker> {
  try {
    const { default: Client } = await import("dockerode");
    return new Client(address);
  } catch (cause) {
    throw new BackendUnavailableError("DockerJupyterServer needs the package dockerode, which is not installed", {
      remedy: "Install it: npm install dockerode",
      cause,
    });
  }
}
