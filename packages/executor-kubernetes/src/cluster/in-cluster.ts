import { existsSync, readFileSync } from "node:fs";
import type { ClusterAccess } from "./cluster-access.ts";

/** Where a pod finds its service account. */
const account = "/var/run/secrets/kubernetes.io/serviceaccount";

/** The cluster whose pod this program runs in; `undefined` if it does not, or its pod has no service account. */
export function inCluster(): ClusterAccess | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = process.env;
  if (host === undefined || host === "" || !existsSync(`${account}/token`)) return undefined;
  return {
    name: "this pod's service account",
    server: new URL(`https://${host.includes(":") ? `[${host}]` : host}:${port}`),
    authority: readFileSync(`${account}/ca.crt`),
    namespace: readFileSync(`${account}/namespace`, "utf8").trim(),
    // The kubelet renews the file.
    credentials: async () => ({ token: readFileSync(`${account}/token`, "utf8").trim() }),
  };
}
