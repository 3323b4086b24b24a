import { BackendUnavailableError, InvalidInputError } from "@fenced/core";
import { z } from "zod";
import type { ClusterAccess } from "./cluster-access.ts";

const statusBody = z.object({
  message: z.string().default(""),
  reason: z.string().default(""),
  details: z.object({ kind: z.string().optional(), name: z.string().optional() }).optional(),
});

/** An HTTP answer that refuses a WebSocket, or any other request. */
export class ApiStatusError extends Error {
  readonly status: number;
  readonly body: unknown;

  constructor(status: number, body: unknown) {
    super(`status ${status}`);
    this.status = status;
    this.body = body;
  }
}

/** The error for a request that the API server refused, with a remedy. Its `cause` has the status. */
export function apiError(
  status: number,
  body: unknown,
  cluster: ClusterAccess,
): BackendUnavailableError | InvalidInputError {
  const { data } = statusBody.safeParse(body);
  const said = data?.message.trim().slice(0, 2000) ?? "";
  const cause = new ApiStatusError(status, body);
  if (status === 401) {
    return new BackendUnavailableError(
      `The API server at ${cluster.server.host} rejected the credentials of ${cluster.name}`,
      {
        remedy: "Log in again, and check whether `kubectl get pods` works.",
        cause,
      },
    );
  }
  if (status === 403) return forbidden(said, cause);
  if (status === 404 && data?.details?.kind === "namespaces") {
    return new BackendUnavailableError(`There is no namespace ${data.details.name ?? ""} in this cluster`, {
      remedy: `Create it (kubectl create namespace ${data.details.name ?? "NAME"}), or set the option \`namespace\`.`,
      cause,
    });
  }
  if (status === 422 || status === 400) {
    return new InvalidInputError(`The cluster rejected the pod as invalid: ${said || `status ${status}`}`, {
      remedy:
        "Correct the option that the message names: `podTemplate`, `resources`, `labels`, `image`, `runtimeClassName`.",
      cause,
    });
  }
  return new BackendUnavailableError(
    `The API server at ${cluster.server.host} rejected the request: ${said || `status ${status}`}`,
    {
      remedy: "Check the cluster's health: kubectl get --raw /readyz?verbose",
      cause,
    },
  );
}

/** The status of the answer that an error came from; `undefined` for other errors. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof Error && error.cause instanceof ApiStatusError ? error.cause.status : undefined;
}

/** Whether the object exists already. Other conflicts, such as those of a quota, are temporary. */
export function isThere(error: unknown): boolean {
  if (!(error instanceof Error && error.cause instanceof ApiStatusError)) return false;
  return statusBody.safeParse(error.cause.body).data?.reason === "AlreadyExists";
}

/** The error for a cluster in which nothing would delete a pod that has ended by itself. */
export function notEnding(cluster: ClusterAccess): BackendUnavailableError {
  return new BackendUnavailableError(
    `The cluster at ${cluster.server.host} does not delete Jobs that have ended, so \`keepAliveMs\` is not possible there`,
    { remedy: "Use Kubernetes 1.21 or later, or enable its feature gate TTLAfterFinished, or leave the option out." },
  );
}

/** The error for an answer that is truncated, or is something else, such as a proxy's page. */
export function notUnderstood(cluster: ClusterAccess): BackendUnavailableError {
  return new BackendUnavailableError(
    `The answer of the API server at ${cluster.server.host} (${cluster.name}) is incomplete or not JSON`,
    {
      remedy:
        "Call again. If it happens again, check proxies between this program and the cluster, and try `kubectl get pods`.",
    },
  );
}

export function unreachable(cluster: ClusterAccess, cause: unknown): BackendUnavailableError {
  const why = cause instanceof AggregateError ? cause.errors.map(reasonOf).join(", ") : reasonOf(cause);
  return new BackendUnavailableError(
    `The API server at ${cluster.server.host} (${cluster.name}) could not be reached: ${why}`,
    { remedy: "Check whether `kubectl get pods` works, and check the kubeconfig's `server` and context.", cause },
  );
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message || String(Reflect.get(error, "code")) : String(error);
}

/** The error for a missing permission, or for a rule of the namespace. */
function forbidden(said: string, cause: Error): BackendUnavailableError {
  const [, user, verb, resource, namespace] =
    /User "([^"]*)" cannot (\S+) resource "([^"]+)".* in the namespace "([^"]+)"/.exec(said) ?? [];
  if (verb === undefined || resource === undefined || namespace === undefined) {
    return new BackendUnavailableError(`The cluster rejected the pod: ${said}`, {
      remedy: /quota/.test(said)
        ? "Stop other sessions, request less in `resources`, or raise the namespace's quota."
        : "Change the options that violate the namespace's rules (`podTemplate`, `resources`, `runtimeClassName`), or use another `namespace`.",
      cause,
    });
  }
  return new BackendUnavailableError(
    `${user ?? "This user"} is not allowed to ${verb} ${resource} in the namespace ${namespace}`,
    { remedy: `Apply this Role, and bind it to the user:\n${roleFor(namespace, resource)}`, cause },
  );
}

const warmPoolRights = `  - { apiGroups: ["extensions.agents.x-k8s.io"], resources: [sandboxwarmpools], verbs: [get] }
  - { apiGroups: ["extensions.agents.x-k8s.io"], resources: [sandboxclaims], verbs: [create, watch, delete] }
  - { apiGroups: ["agents.x-k8s.io"], resources: [sandboxes], verbs: [get] }
`;
/** Permissions that a session needs only with some options, by resource. */
const moreRights: Readonly<Record<string, string>> = {
  sandboxwarmpools: warmPoolRights,
  sandboxclaims: warmPoolRights,
  sandboxes: warmPoolRights,
  jobs: `  - { apiGroups: ["batch"], resources: [jobs], verbs: [create, delete] }\n`,
  networkpolicies: `  - { apiGroups: ["networking.k8s.io"], resources: [networkpolicies], verbs: [create, list] }\n`,
};

/** The permissions that every session needs, plus those for the refused resource. */
function roleFor(namespace: string, resource: string): string {
  return `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: fenced, namespace: ${namespace} }
rules:
  - { apiGroups: [""], resources: [pods], verbs: [create, get, list, watch, delete] }
  - { apiGroups: [""], resources: [pods/exec], verbs: [create, get] }
${moreRights[resource] ?? ""}`;
}
