import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** What the `docker` program prints, without white space around it. */
export async function docker(...words: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)("docker", words, { maxBuffer: 67_108_864 });
  return stdout.trim();
}

/** The containers of executors and all volumes that there are now. */
export async function dockerResources(): Promise<readonly string[]> {
  const [containers, volumes] = await Promise.all([
    docker("ps", "--all", "--quiet", "--no-trunc", "--filter", "label=fenced.executor"),
    docker("volume", "ls", "--quiet"),
  ]);
  return `${containers}\n${volumes}`.split("\n").filter((line) => line !== "");
}
