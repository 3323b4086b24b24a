import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { testKubeconfig } from "@fenced/test-support";
import { namespace } from "./cluster.ts";

/** The directory of the cluster that `scripts/ci/kubernetes.sh` has started; `undefined` if the tests run on another one. */
export const ownCluster: string | undefined = existsSync(join(dirname(testKubeconfig), "server.key"))
  ? dirname(testKubeconfig)
  : undefined;
const execute = promisify(execFile);

/** The containers of a pod that run on the node, where that is the Docker Engine of this machine. */
export async function containersOf(
  pod: string,
  {
    where = namespace,
    kind = "container",
  }: { readonly where?: string; readonly kind?: "container" | "podsandbox" } = {},
): Promise<string[]> {
  const filters = [
    `label=io.kubernetes.pod.name=${pod}`,
    `label=io.kubernetes.pod.namespace=${where}`,
    `label=io.kubernetes.docker.type=${kind}`,
  ];
  const { stdout } = await execute("docker", ["ps", "--quiet", ...filters.flatMap((each) => ["--filter", each])]);
  return stdout.split("\n").filter((id) => id !== "");
}

/** The process in which a container's first program runs. */
export async function processOf(container: string): Promise<string> {
  const { stdout } = await execute("docker", ["inspect", "--format", "{{.State.Pid}}", container]);
  return stdout.trim();
}

/** The states of the processes of a pod, one a line, as `ps` shows them. */
export async function statesIn(pod: string): Promise<string> {
  const [container = ""] = await containersOf(pod);
  const { stdout } = await execute("docker", ["top", container, "-eo", "stat,pid"]);
  return stdout;
}
