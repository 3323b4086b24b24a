import { readFileSync } from "node:fs";
import { request } from "node:https";
import { testKubeconfig } from "@fenced/test-support";
import { parse } from "yaml";
import { z } from "zod";
import { KubernetesCommandLineCodeExecutor, type KubernetesExecutorOptions } from "../../src/index.ts";

export const image = "fenced-test:python";

/** An executor on the cluster of the tests, for `await using`. */
export function createExecutor(options: KubernetesExecutorOptions = {}): KubernetesCommandLineCodeExecutor {
  return new KubernetesCommandLineCodeExecutor({ image, kubeconfig: testKubeconfig, namespace, ...options });
}

/** Where the tests' pods are. */
export const namespace = "default";

const kubeconfig = z.object({
  clusters: z.tuple([
    z.object({ cluster: z.object({ server: z.string(), "certificate-authority": z.string() }) }),
  ]),
  users: z.tuple([z.object({ user: z.object({ token: z.string() }) })]),
});

/** What the tests need to know of the kubeconfig, which `scripts/ci/kubernetes.sh` writes. */
export function readKubeconfig(): { readonly server: URL; readonly authority: string; readonly token: string } {
  const { clusters, users } = kubeconfig.parse(parse(readFileSync(testKubeconfig, "utf8")));
  const [{ cluster }] = clusters;
  return { server: new URL(cluster.server), authority: cluster["certificate-authority"], token: users[0].user.token };
}

/** Asks the API server, as its administrator; resolves with the status and the parsed answer. */
export async function ask(method: string, path: string, body?: unknown): Promise<{ status: number; body: unknown }> {
  const { server, authority, token } = readKubeconfig();
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const asked = request(new URL(path, server), { method, ca: readFileSync(authority), headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body: JSON.parse(text) }));
    });
    asked.on("error", reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const podList = z.object({ items: z.array(z.object({ metadata: z.object({ name: z.string() }), status: z.object({ phase: z.string() }) })) });

/** Names and phases of the pods with a label. */
export async function podsWith(label: string): Promise<{ readonly name: string; readonly phase: string }[]> {
  const { body } = await ask("GET", `/api/v1/namespaces/${namespace}/pods?labelSelector=${encodeURIComponent(label)}`);
  return podList.parse(body).items.map(({ metadata, status }) => ({ name: metadata.name, phase: status.phase }));
}

/** Deletes a pod at once, as if its node had been taken away. */
export async function deletePod(name: string): Promise<void> {
  await ask("DELETE", `/api/v1/namespaces/${namespace}/pods/${name}?gracePeriodSeconds=0`);
}
