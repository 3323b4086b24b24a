import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** The trimmed output of the `docker` program. */
export async function docker(...words: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)("docker", words, { maxBuffer: 67_108_864 });
  return stdout.trim();
}

/**
 * The containers that were created from this name of an image, and the volumes that no container uses. Other tests, which
 * run at the same time, use other names.
 */
export async function dockerResources(image: string): Promise<readonly string[]> {
  const [containers, volumes] = await Promise.all([
    docker("ps", "--all", "--no-trunc", "--format", "{{.Image}} {{.ID}}"),
    docker("volume", "ls", "--quiet", "--filter", "dangling=true"),
  ]);
  const ours = containers.split("\n").filter((line) => line.startsWith(`${image} `));
  return [...ours, ...volumes.split("\n").filter((line) => line !== "")];
}
