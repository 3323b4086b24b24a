import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { testKubeconfig } from "@fenced/test-support";
import { parse } from "yaml";
import { z } from "zod";
import { ask, namespace } from "./cluster.ts";

/** A directory for kubeconfig files, for `await using`. */
export class KubeconfigFiles implements AsyncDisposable {
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async make(): Promise<KubeconfigFiles> {
    return new KubeconfigFiles(await mkdtemp(path.join(tmpdir(), "fenced-test-")));
  }

  /** Writes a file, and returns its path. Content that is not text becomes JSON, which is YAML. */
  async write(name: string, content: unknown, mode = 0o600): Promise<string> {
    const file = path.join(this.directory, name);
    await writeFile(file, typeof content === "string" ? content : JSON.stringify(content));
    await chmod(file, mode);
    return file;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }
}

const looseList = z.array(z.looseObject({ name: z.string() }));
const fileSchema = z.looseObject({ clusters: looseList, users: looseList });

/** The cluster of the tests' kubeconfig with other settings, and its user. */
export function testCluster(settings: Readonly<Record<string, unknown>> = {}): { cluster: object; user: object } {
  const { clusters, users } = fileSchema.parse(parse(readFileSync(testKubeconfig, "utf8")));
  return {
    cluster: { ...z.looseObject({}).parse(clusters[0]?.["cluster"]), ...settings },
    user: z.looseObject({}).parse(users[0]?.["user"]),
  };
}

/** What a pod knows about its cluster: the server, and the certificate of its authority. */
export function clusterParts(cluster: object): { readonly server: URL; readonly authority: string } {
  const parts = z
    .object({
      server: z.string(),
      "certificate-authority": z.string().optional(),
      "certificate-authority-data": z.string().default(""),
    })
    .parse(cluster);
  const { "certificate-authority": file, "certificate-authority-data": data } = parts;
  const authority = file === undefined ? Buffer.from(data, "base64").toString() : readFileSync(file, "utf8");
  return { server: new URL(parts.server), authority };
}

/** The rights that the README asks for. */
export const role: string = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: fenced }
rules:
  - { apiGroups: [""], resources: [pods], verbs: [create, get, list, watch, delete] }
  - { apiGroups: [""], resources: [pods/exec], verbs: [create, get] }
`;

/** A kubeconfig with one context. */
export function kubeconfigOf({ cluster, user }: { readonly cluster: object; readonly user: object }): object {
  return {
    "current-context": "test",
    clusters: [{ name: "test", cluster }],
    users: [{ name: "test", user }],
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
  };
}

/** A service account that may do nothing until it is given a role, for `await using`. */
export class ServiceAccount implements AsyncDisposable {
  readonly name: string;
  readonly token: string;
  #role = false;

  private constructor(name: string, token: string) {
    this.name = name;
    this.token = token;
  }

  static async make(): Promise<ServiceAccount> {
    const name = `fenced-test-${randomUUID()}`;
    await ask("POST", accounts, { metadata: { name } });
    const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 3600 } };
    const answer = await ask("POST", `${accounts}/${name}/token`, request);
    return new ServiceAccount(name, z.object({ status: z.object({ token: z.string() }) }).parse(answer).status.token);
  }

  /** Creates the role under this account's name, and binds it. */
  async grant(rights: string): Promise<void> {
    this.#role = true;
    const parsed = z.looseObject({}).parse(parse(rights));
    await ask("POST", `${rbac}/roles`, { ...parsed, metadata: { name: this.name } });
    await ask("POST", `${rbac}/rolebindings`, {
      metadata: { name: this.name },
      subjects: [{ kind: "ServiceAccount", name: this.name, namespace }],
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: this.name },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const kind of this.#role ? ["rolebindings", "roles"] : []) await ask("DELETE", `${rbac}/${kind}/${this.name}`);
    await ask("DELETE", `${accounts}/${this.name}`);
  }
}

const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
