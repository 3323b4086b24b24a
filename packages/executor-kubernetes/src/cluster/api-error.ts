import { BackendUnavailableError, InvalidInputError } from "@fenced/core";
import { z } from "zod";
import type { ClusterAccess } from "./cluster-access.ts";

const statusBody = z.object({
  message: z.string().default(""),
  reason: z.string().default(""),
  details: z.object({ kind: z.string().optional(), name: z.string().optional() }).optional(),
});

/** An answer that refuses a WebSocket. */
export class ApiStatusError extends Error {
  readonly status: number;
  readonly body: unknown;

  constructor(status: number, body: unknown) {
    super(`status ${status}`);
    this.status = status;
    this.body = body;
  }
}

/** What the API server says that refuses a request, and what to do about it. The `cause` has the status. */
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
      `The API server at ${cluster.server.host} does not accept the credentials of ${cluster.name}`,
      {
        remedy: "Log in again, and see whether `kubectl get pods` works.",
        cause,
      },
    );
  }
  if (status === 403) return forbidden(said, cause);
  if (status === 404 && data?.details?.kind === "namespaces") {
    return new BackendUnavailableError(`There is no namespace ${data.details.name ?? ""} in this cluster`, {
      remedy: `Make it (kubectl create namespace ${data.details.name ?? "NAME"}), or set the option \`namespace\`.`,
      cause,
    });
  }
  if (status === 422 || status === 400) {
    return new InvalidInputError(`The cluster does not accept the pod: ${said || `status ${status}`}`, {
      remedy:
        "Correct the option that it complains about: `podTemplate`, `resources`, `labels`, `image`, `runtimeClassName`.",
      cause,
    });
  }
  return new BackendUnavailableError(
    `The API server at ${cluster.server.host} refused: ${said || `status ${status}`}`,
    {
      remedy: "See whether the cluster is well: kubectl get --raw /readyz?verbose",
      cause,
    },
  );
}

/** The status of the answer that an error came from; `undefined` for other errors. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof Error && error.cause instanceof ApiStatusError ? error.cause.status : undefined;
}

export function unreachable(cluster: ClusterAccess, cause: unknown): BackendUnavailableError {
  const why = cause instanceof AggregateError ? cause.errors.map(reasonOf).join(", ") : reasonOf(cause);
  return new BackendUnavailableError(
    `The API server at ${cluster.server.host} (${cluster.name}) could not be reached: ${why}`,
    { remedy: "See whether `kubectl get pods` works, and check the kubeconfig's `server` and context.", cause },
  );
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message || String(Reflect.get(error, "code")) : String(error);
}

/** A right that is missing, or a rule of the namespace. */
function forbidden(said: string, cause: Error): BackendUnavailableError {
  const [, user, verb, resource, namespace] =
    /User "([^"]*)" cannot (\S+) resource "([^"]+)".* in the namespace "([^"]+)"/.exec(said) ?? [];
  if (verb === undefined || resource === undefined || namespace === undefined) {
    return new BackendUnavailableError(`The cluster does not admit the pod: ${said}`, {
      remedy: /quota/.test(said)
        ? "Stop other sessions, ask for less in `resources`, or raise the namespace's quota."
        : "Change the options that the namespace's rules forbid (`podTemplate`, `resources`, `runtimeClassName`), or use another `namespace`.",
      cause,
    });
  }
  return new BackendUnavailableError(
    `${user ?? "This user"} may not ${verb} ${resource} in the namespace ${namespace}`,
    { remedy: `Apply this Role, and bind it to the user:\n${roleFor(namespace)}`, cause },
  );
}

/** The rights that a session needs. */
function roleFor(namespace: string): string {
  return `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: fenced, namespace: ${namespace} }
rules:
  - { apiGroups: [""], resources: [pods], verbs: [create, get, watch, delete, deletecollection] }
  - { apiGroups: [""], resources: [pods/exec], verbs: [create, get] }
`;
}
