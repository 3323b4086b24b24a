import { BackendUnavailableError } from "@fenced/core";
import { z } from "zod";
import type { ApiClient } from "../cluster/api-client.ts";
import { statusOf } from "../cluster/api-error.ts";

const extensions = "/apis/extensions.agents.x-k8s.io/v1beta1";
const agents = "/apis/agents.x-k8s.io/v1beta1";
/** The annotation of a Sandbox that names its pod, if their names differ. */
const podNameAnnotation = "agents.x-k8s.io/pod-name";

/** The fields of a SandboxWarmPool that are used here. */
export interface WarmPool {
  readonly spec: { readonly replicas: number };
  readonly status: { readonly readyReplicas: number };
}

/** The fields of a SandboxClaim that are used here. */
export interface SandboxClaim {
  readonly status: {
    readonly conditions: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string | undefined;
      readonly message?: string | undefined;
    }[];
    readonly sandbox: { readonly name?: string | undefined };
  };
}

const text = z.string().optional();
const warmPool: z.ZodType<WarmPool> = z.object({
  spec: z.object({ replicas: z.number().default(1) }),
  status: z.object({ readyReplicas: z.number().default(0) }).default({ readyReplicas: 0 }),
});
const sandboxClaim: z.ZodType<SandboxClaim> = z.object({
  status: z
    .object({
      conditions: z.array(z.object({ type: z.string(), status: z.string(), reason: text, message: text })).default([]),
      sandbox: z.object({ name: text }).default({}),
    })
    .default({ conditions: [], sandbox: {} }),
});
const sandbox = z.object({
  metadata: z.object({ name: z.string(), annotations: z.record(z.string(), z.string()).default({}) }),
});

/** Requests about the claims of one namespace. */
export class ClaimClient {
  readonly #api: ApiClient;
  readonly #namespace: string;

  constructor(api: ApiClient, namespace: string) {
    this.#api = api;
    this.#namespace = namespace;
  }

  /**
   * The pool of this name.
   *
   * @throws BackendUnavailableError if there is none, or the cluster does not support pools.
   */
  async pool(name: string, signal: AbortSignal): Promise<WarmPool> {
    const path = `${this.#path(extensions, "sandboxwarmpools")}/${encodeURIComponent(name)}`;
    try {
      return warmPool.parse(await this.#api.send({ method: "GET", path, signal }));
    } catch (error) {
      if (statusOf(error) === 404) throw noPool(error, name, this.#namespace);
      throw error;
    }
  }

  /** Creates a claim. Succeeds if it exists already, because an earlier attempt whose answer was lost created it. */
  async create(manifest: object, signal: AbortSignal): Promise<void> {
    await this.#api.create(this.#path(extensions, "sandboxclaims"), manifest, signal);
  }

  /** The claim as it is now, and then whenever it changes, until the server or the caller ends it. */
  async *follow(name: string, signal: AbortSignal): AsyncGenerator<SandboxClaim, void, void> {
    const query = `watch=1&fieldSelector=metadata.name%3D${name}&timeoutSeconds=300`;
    for await (const event of this.#api.watch(`${this.#path(extensions, "sandboxclaims")}?${query}`, signal)) {
      const claim = sandboxClaim.safeParse(Reflect.get(Object(event), "object")).data;
      if (claim) yield claim;
    }
  }

  /** The pod of a sandbox. */
  async podOf(name: string, signal: AbortSignal): Promise<string> {
    const path = `${this.#path(agents, "sandboxes")}/${encodeURIComponent(name)}`;
    const { metadata } = sandbox.parse(await this.#api.send({ method: "GET", path, signal }));
    const named = metadata.annotations[podNameAnnotation] ?? "";
    return named === "" ? metadata.name : named;
  }

  /** Deletes a claim together with its sandbox and pod; does nothing if it is gone. */
  async delete(name: string, signal: AbortSignal | undefined): Promise<void> {
    await this.#api.delete(`${this.#path(extensions, "sandboxclaims")}/${name}`, signal);
  }

  #path(group: string, resource: string): string {
    return `${group}/namespaces/${encodeURIComponent(this.#namespace)}/${resource}`;
  }
}

function noPool(cause: unknown, name: string, namespace: string): BackendUnavailableError {
  // A server that supports the resource names the object that it has not found.
  const known = cause instanceof Error && cause.message.includes(name);
  return known
    ? new BackendUnavailableError(`There is no SandboxWarmPool ${name} in the namespace ${namespace}`, {
        remedy: "Apply one, or correct `warmPool` or `namespace`: kubectl get sandboxwarmpools",
        cause,
      })
    : new BackendUnavailableError(
        "The cluster does not support SandboxWarmPool of extensions.agents.x-k8s.io/v1beta1",
        {
          remedy: "Install agent-sandbox 0.5 or later with its extensions, or leave out `warmPool`.",
          cause,
        },
      );
}
