import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

/** Podman's API service, on a socket of its own. */
export interface PodmanService extends AsyncDisposable {
  /** As in `DOCKER_HOST`. */
  readonly address: string;
  /** The containers of executors, and all volumes, that exist now. */
  resources(): Promise<readonly string[]>;
}

/** Starts `podman system service`. */
export async function startPodman(): Promise<PodmanService> {
  const directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
  const socket = join(directory, "podman.sock");
  const config = join(directory, "containers.conf");
  // Podman's own limits are higher than what root may set in a container, where CI often runs.
  await writeFile(config, '[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n');
  const service = spawn("podman", ["system", "service", "--time=0", `unix://${socket}`], {
    env: { ...process.env, CONTAINERS_CONF: config },
    stdio: "ignore",
  });
  const exited = once(service, "exit");
  for (let attempt = 0; attempt < 200 && !(await isThere(socket)); attempt += 1) await sleep(50);
  return {
    address: `unix://${socket}`,
    async resources() {
      const [containers, volumes] = await Promise.all([
        podman("ps", "--all", "--quiet", "--no-trunc", "--filter", "label=fenced.executor"),
        podman("volume", "ls", "--quiet"),
      ]);
      return `${containers}\n${volumes}`.split("\n").filter((line) => line !== "");
    },
    async [Symbol.asyncDispose]() {
      service.kill();
      await exited;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function podman(...words: readonly string[]): Promise<string> {
  return (await promisify(execFile)("podman", words)).stdout;
}

async function isThere(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}
