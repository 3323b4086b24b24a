import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { BackendUnavailableError, InvalidInputError } from "@fenced/core";
import { homeDirectory } from "@fenced/core/runtime";
import { parse } from "yaml";
import { z } from "zod";
import type { ClusterAccess, CredentialSource } from "./cluster-access.ts";
import { execPlugin, execPluginConfig } from "./exec-plugin.ts";
import { inCluster } from "./in-cluster.ts";

const text = z.string().optional();
/** Empty and null values count as missing, as they do for kubectl. */
const filled = <Value extends z.ZodType>(value: Value) =>
  z.preprocess((settings) => {
    if (typeof settings !== "object" || settings === null) return settings;
    return Object.fromEntries(Object.entries(settings).filter(([, each]) => each !== null && each !== ""));
  }, value);
const clusterConfig = filled(
  z.object({
    server: z.string(),
    "certificate-authority": text,
    "certificate-authority-data": text,
    "insecure-skip-tls-verify": z.boolean().optional(),
    "tls-server-name": text,
    "proxy-url": text,
  }),
);
const userConfig = filled(
  z.object({
    "client-certificate": text,
    "client-certificate-data": text,
    "client-key": text,
    "client-key-data": text,
    token: text,
    tokenFile: text,
    exec: execPluginConfig.optional(),
    "auth-provider": z.unknown().optional(),
    username: text,
    as: text,
  }),
);
const contextConfig = filled(z.object({ cluster: z.string(), user: text, namespace: text }));
const named = <Value extends z.ZodType>(name: string, value: Value) =>
  z.array(z.object({ name: z.string(), [name]: value.nullish() })).nullish();
const fileConfig = z
  .object({
    "current-context": z.string().nullish(),
    clusters: named("cluster", clusterConfig),
    users: named("user", userConfig),
    contexts: named("context", contextConfig),
  })
  .nullable();

type ClusterConfig = z.output<typeof clusterConfig>;
type UserConfig = z.output<typeof userConfig>;

/** An entry, and the directory of its file, to which its paths are relative. */
interface Entry<Value> {
  readonly value: Value;
  readonly directory: string;
}

/** All files merged: of entries with the same name, the first one counts. */
interface MergedConfig {
  readonly clusters: Map<string, Entry<ClusterConfig>>;
  readonly users: Map<string, Entry<UserConfig>>;
  readonly contexts: Map<string, Entry<z.output<typeof contextConfig>>>;
  currentContext: string | undefined;
}

/** Which cluster, and how to find it. */
export interface ClusterChoice {
  /** A kubeconfig file. Default: those in `KUBECONFIG`, else `~/.kube/config`, else the account of the pod that this runs in. */
  readonly kubeconfig?: string | undefined;
  /** A context in it. Default: its current one. */
  readonly context?: string | undefined;
}

/**
 * Finds the cluster, as kubectl does.
 *
 * @throws InvalidInputError if there is no such file, context, cluster or user, or a setting that is not supported;
 * BackendUnavailableError if no cluster is configured.
 */
export function findCluster({ kubeconfig, context }: ClusterChoice): ClusterAccess {
  const files = kubeconfigFiles(kubeconfig);
  if (files.length === 0) {
    const inside = inCluster();
    if (inside && context === undefined) return inside;
    throw new BackendUnavailableError("There is no kubeconfig, and this program is not running in a pod", {
      remedy:
        "Set KUBECONFIG or the option `kubeconfig` to a file that `kubectl` works with, or create ~/.kube/config.",
    });
  }
  const merged: MergedConfig = {
    clusters: new Map(),
    users: new Map(),
    contexts: new Map(),
    currentContext: undefined,
  };
  for (const file of files) addFile(merged, file);
  return accessOf(merged, context, files);
}

function kubeconfigFiles(given: string | undefined): string[] {
  if (given !== undefined) {
    if (existsSync(given)) return [given];
    throw new InvalidInputError(`There is no kubeconfig file ${given}`, {
      remedy: "Set `kubeconfig` to a file that exists, or leave it out.",
    });
  }
  const listed = process.env["KUBECONFIG"];
  const names =
    listed === undefined || listed === "" ? [path.join(homeDirectory(), ".kube/config")] : listed.split(path.delimiter);
  return names.filter((name) => name !== "" && existsSync(name));
}

function addFile(merged: MergedConfig, file: string): void {
  const parsed = fileConfig.safeParse(parseYaml(file));
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new InvalidInputError(
      `${file} is not a kubeconfig file: ${issue?.path.join(".") ?? ""} ${issue?.message ?? ""}`,
      {
        remedy: "Check whether `kubectl config view` can read it.",
      },
    );
  }
  const directory = path.dirname(path.resolve(file));
  const { clusters, users, contexts, "current-context": current } = parsed.data ?? {};
  if (current !== null && current !== "") merged.currentContext ??= current;
  for (const { name, cluster } of clusters ?? []) addEntry(merged.clusters, name, cluster, directory);
  for (const { name, user } of users ?? []) addEntry(merged.users, name, user ?? {}, directory);
  for (const { name, context } of contexts ?? []) addEntry(merged.contexts, name, context, directory);
}

function addEntry<Value>(
  entries: Map<string, Entry<Value>>,
  name: unknown,
  value: Value | null | undefined,
  directory: string,
): void {
  if (typeof name !== "string" || value === null || value === undefined || entries.has(name)) return;
  entries.set(name, { value, directory });
}

function parseYaml(file: string): unknown {
  try {
    // What is wrong with it is in the error, and not for the program's console.
    return parse(readFileSync(file, "utf8"), { logLevel: "error" });
  } catch (cause) {
    throw new InvalidInputError(`${file} could not be read: ${String(cause)}`, {
      remedy: "Check whether `kubectl config view` can read it.",
      cause,
    });
  }
}

function accessOf(merged: MergedConfig, chosen: string | undefined, files: readonly string[]): ClusterAccess {
  const name = chosen ?? merged.currentContext;
  if (name === undefined) {
    throw new InvalidInputError(`There is no current context in ${files.join(", ")}`, {
      remedy: `Set the option \`context\` to one of ${[...merged.contexts.keys()].join(", ")}, or: kubectl config use-context NAME`,
    });
  }
  const context = entryOf(merged.contexts, name, "context", files);
  const cluster = entryOf(merged.clusters, context.value.cluster, "cluster", files);
  const user = context.value.user === undefined ? undefined : entryOf(merged.users, context.value.user, "user", files);
  const { value, directory } = cluster;
  const authority = materialOf(value["certificate-authority-data"], value["certificate-authority"], directory);
  return {
    name: `context ${name}`,
    server: serverOf(value.server),
    ...(authority === undefined ? {} : { authority }),
    ...(value["insecure-skip-tls-verify"] === true ? { insecure: true } : {}),
    ...(value["tls-server-name"] === undefined ? {} : { serverName: value["tls-server-name"] }),
    ...(value["proxy-url"] === undefined ? {} : { proxy: proxyOf(value["proxy-url"]) }),
    ...(context.value.namespace === undefined ? {} : { namespace: context.value.namespace }),
    credentials: user ? credentialsOf(user, { server: value.server, authority }) : async () => ({}),
  };
}

function entryOf<Value>(
  entries: ReadonlyMap<string, Value>,
  name: string,
  what: string,
  files: readonly string[],
): Value {
  const found = entries.get(name);
  if (found !== undefined) return found;
  throw new InvalidInputError(`There is no ${what} ${JSON.stringify(name)} in ${files.join(", ")}`, {
    remedy: `Set \`context\` to another one. The kubeconfig has these ${what}s: ${[...entries.keys()].join(", ") || "none"}.`,
  });
}

function credentialsOf(
  { value: user, directory }: Entry<UserConfig>,
  cluster: { readonly server: string; readonly authority: Buffer | undefined },
): CredentialSource {
  const unsupported = (["auth-provider", "username", "as"] as const).find((name) => user[name] !== undefined);
  if (unsupported !== undefined) {
    throw new InvalidInputError(`The user in this kubeconfig has \`${unsupported}\`, which is not supported`, {
      remedy: "Use a client certificate, a token or an exec plugin (`exec`), or a service account.",
    });
  }
  if (user.exec) return execPlugin(user.exec, directory, cluster);
  const cert = materialOf(user["client-certificate-data"], user["client-certificate"], directory);
  const key = materialOf(user["client-key-data"], user["client-key"], directory);
  const { token, tokenFile } = user;
  return async () => {
    // The file is renewed from outside; the `token` beside it may be outdated.
    const renewed = tokenFile === undefined ? "" : readNamed(path.resolve(directory, tokenFile)).toString().trim();
    const found = renewed === "" ? token : renewed;
    return {
      ...(found === undefined ? {} : { token: found }),
      ...(cert && key ? { certificate: { cert, key } } : {}),
    };
  };
}

/** Reads a file that the kubeconfig names. */
function readNamed(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new InvalidInputError(`${file}, which the kubeconfig names, could not be read: ${String(cause)}`, {
      remedy: "Create the file again, or choose another `context`.",
      cause,
    });
  }
}

function materialOf(data: string | undefined, file: string | undefined, directory: string): Buffer | undefined {
  if (data !== undefined && data !== "") return Buffer.from(data, "base64");
  if (file === undefined || file === "") return undefined;
  return readNamed(path.resolve(directory, file));
}

function serverOf(server: string): URL {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url && (url.protocol === "https:" || url.protocol === "http:")) return url;
  throw new InvalidInputError(`The cluster's server ${JSON.stringify(server)} is not an http(s) address`, {
    remedy: "Correct `server` in the kubeconfig.",
  });
}

function proxyOf(proxy: string): URL {
  const url = URL.canParse(proxy) ? new URL(proxy) : undefined;
  if (url && (url.protocol === "https:" || url.protocol === "http:")) return url;
  throw new InvalidInputError(`The cluster's proxy-url ${JSON.stringify(proxy)} is not an HTTP proxy`, {
    remedy: "Use an http:// or https:// proxy; SOCKS is not supported.",
  });
}
