import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { ask, createExecutor, printed } from "./support/cluster.ts";
import { KubeconfigFiles, kubeconfigOf, testCluster } from "./support/kubeconfig-files.ts";

const manifest = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string() }),
});

/** The manifests that the page on a hardened namespace shows first, for a namespace with another name. */
function manifestsFor(namespace: string): z.output<typeof manifest>[] {
  const page = readFileSync(new URL("../../../docs/kubernetes.md", import.meta.url), "utf8");
  const [, text = ""] = /```yaml\n([^]*?)```/.exec(page) ?? [];
  const renamed = text
    .replaceAll("namespace: code", `namespace: ${namespace}`)
    .replace("name: code", `name: ${namespace}`);
  return parseAllDocuments(renamed).map((document) => manifest.parse(document.toJS()));
}

const plurals: Readonly<Record<string, string>> = {
  Namespace: "namespaces",
  ResourceQuota: "resourcequotas",
  LimitRange: "limitranges",
  NetworkPolicy: "networkpolicies",
  ServiceAccount: "serviceaccounts",
  Role: "roles",
  RoleBinding: "rolebindings",
};

describe("the namespace that the documentation shows", needs("kubernetes"), () => {
  it("has everything that a session needs, and a quota that errors report", async () => {
    const namespace = `fenced-test-${randomUUID()}`;
    const manifests = manifestsFor(namespace);
    expect(manifests.map(({ kind }) => kind)).toEqual(Object.keys(plurals));
    try {
      for (const each of manifests) {
        const group = each.apiVersion === "v1" ? "/api/v1" : `/apis/${each.apiVersion}`;
        const place = each.kind === "Namespace" ? "" : `/namespaces/${namespace}`;
        await ask("POST", `${group}${place}/${plurals[each.kind] ?? ""}`, each);
      }
      const account = `/api/v1/namespaces/${namespace}/serviceaccounts`;
      // The default one, without which there are no pods, appears a moment later.
      await expect
        .poll(() => ask("GET", `${account}/default`).catch(() => undefined), { timeout: 60_000 })
        .toBeDefined();
      const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
      const { status } = z
        .object({ status: z.object({ token: z.string() }) })
        .parse(await ask("POST", `${account}/fenced/token`, request));
      await using files = await KubeconfigFiles.make();
      const kubeconfig = await files.write(
        "account",
        kubeconfigOf({ ...testCluster(), user: { token: status.token } }),
      );
      await using executor = createExecutor({ kubeconfig, namespace });
      // The quota is counted a moment after it is created.
      const ran = () =>
        executor.executeCodeBlocks([{ language: "python", code: "print(6 * 7)" }]).then(({ output }) => output, String);
      await expect.poll(ran, { timeout: 60_000 }).toBe("42\n");
      await using kept = createExecutor({ kubeconfig, namespace, keepAliveMs: 60_000, network: "open" });
      expect(await printed(kept, "print('kept')")).toBe("kept");
      const greedy = createExecutor({ kubeconfig, namespace, resources: { limits: { memory: "3Gi" } } });
      await expect(greedy.start()).rejects.toThrow(/rejected the pod.*maximum memory usage.*resources/s);
      // What forbids a Job's pod is known before there is a Job.
      const both = { keepAliveMs: 60_000, resources: { limits: { memory: "3Gi" } } };
      const greedyJob = createExecutor({ kubeconfig, namespace, ...both });
      await expect(greedyJob.start()).rejects.toThrow(/rejected the pod.*maximum memory usage.*resources/s);
    } finally {
      await ask("DELETE", `/api/v1/namespaces/${namespace}`);
    }
  }, 120_000);
});
