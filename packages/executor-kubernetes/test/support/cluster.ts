import { testKubeconfig } from "@fenced/test-support";
import { z } from "zod";
import { ApiClient } from "../../src/cluster/api-client.ts";
import { findCluster } from "../../src/cluster/kubeconfig.ts";
import { KubernetesCommandLineCodeExecutor, type KubernetesExecutorOptions } from "../../src/index.ts";

/** An image with Python; a cluster that `scripts/ci/kubernetes.sh` did not start needs it, too: `kind load docker-image`. */
export const image = "fenced-test:python";
/** Where the tests' pods are. */
export const namespace = "default";

/** An executor on the cluster of the tests, for `await using`. */
export function createExecutor(options: KubernetesExecutorOptions = {}): KubernetesCommandLineCodeExecutor {
  return new KubernetesCommandLineCodeExecutor({ image, kubeconfig: testKubeconfig, namespace, ...options });
}

/** The trimmed output of a block that must succeed. */
export async function printed(
  executor: KubernetesCommandLineCodeExecutor,
  code: string,
  language = "python",
): Promise<string> {
  const { exitCode, output } = await executor.executeCodeBlocks([{ language, code }]);
  if (exitCode !== 0) throw new Error(`exit code ${exitCode}: ${output}`);
  return output.trim();
}

let administrator: ApiClient | undefined;

/** Asks the API server, as the administrator. */
export async function ask(method: "GET" | "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<unknown> {
  administrator ??= new ApiClient(findCluster({ kubeconfig: testKubeconfig }));
  return administrator.send({ method, path, body });
}

const podSchema = z.object({
  metadata: z.object({ name: z.string(), labels: z.record(z.string(), z.string()).default({}) }),
  spec: z.record(z.string(), z.unknown()),
  status: z.object({ phase: z.string() }),
});
const podList = z.object({ items: z.array(podSchema) });
const pods = `/api/v1/namespaces/${namespace}/pods`;

/** A pod, as the API returns it. */
export async function readPod(name: string): Promise<z.output<typeof podSchema>> {
  return podSchema.parse(await ask("GET", `${pods}/${name}`));
}

/** Names and phases of the pods with a label. */
export async function podsWith(label: string): Promise<{ readonly name: string; readonly phase: string }[]> {
  const { items } = podList.parse(await ask("GET", `${pods}?labelSelector=${encodeURIComponent(label)}`));
  return items.map(({ metadata, status }) => ({ name: metadata.name, phase: status.phase }));
}

const names = z.object({ items: z.array(z.object({ metadata: z.object({ name: z.string() }) })) });

/** Names of the Jobs with a label. */
export async function jobsWith(label: string): Promise<string[]> {
  const place = `/apis/batch/v1/namespaces/${namespace}/jobs`;
  const { items } = names.parse(await ask("GET", `${place}?labelSelector=${encodeURIComponent(label)}`));
  return items.map(({ metadata }) => `job ${metadata.name}`);
}

/** A pod's phase, or that it is gone. */
export async function phaseOf(name: string): Promise<string> {
  const { items } = podList.parse(await ask("GET", `${pods}?fieldSelector=metadata.name%3D${name}`));
  return items[0]?.status.phase ?? "gone";
}

/** Deletes a pod at once, as if its node had been taken away. */
export async function deletePod(name: string): Promise<void> {
  await ask("DELETE", `${pods}/${name}?gracePeriodSeconds=0`);
}

const resourceList = z.object({
  resources: z.array(z.object({ name: z.string(), group: z.string().default(""), version: z.string().default("") })),
});

/** Evicts a pod, as `kubectl drain` does. */
export async function evictPod(name: string): Promise<void> {
  const { resources } = resourceList.parse(await ask("GET", "/api/v1"));
  const known = resources.find((each) => each.name === "pods/eviction");
  const apiVersion = `${known?.group ?? ""}/${known?.version ?? ""}`;
  await ask("POST", `${pods}/${name}/eviction`, { apiVersion, kind: "Eviction", metadata: { name, namespace } });
}
