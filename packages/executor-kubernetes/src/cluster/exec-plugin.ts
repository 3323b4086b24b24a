import { execFile } from "node:child_process";
import path from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import { z } from "zod";
import { parseJson } from "./answer-text.ts";
import type { Credentials, CredentialSource } from "./cluster-access.ts";

/** A program that provides credentials, as configured in a kubeconfig. */
export interface ExecPluginConfig {
  readonly apiVersion: string;
  readonly command: string;
  readonly args?: readonly string[] | null | undefined;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null | undefined;
  /** What to do if the program is missing. */
  readonly installHint?: string | undefined;
  /** Whether to tell the program about the cluster. */
  readonly provideClusterInfo?: boolean | undefined;
}

export const execPluginConfig: z.ZodType<ExecPluginConfig> = z.object({
  apiVersion: z.string(),
  command: z.string(),
  args: z.array(z.string()).nullish(),
  env: z.array(z.object({ name: z.string(), value: z.string() })).nullish(),
  installHint: z.string().optional(),
  provideClusterInfo: z.boolean().optional(),
});

const execCredential = z.object({
  kind: z.literal("ExecCredential"),
  status: z.object({
    token: z.string().optional(),
    clientCertificateData: z.string().optional(),
    clientKeyData: z.string().optional(),
    expirationTimestamp: z.string().optional(),
  }),
});

/** Time limit for a plugin in milliseconds: it may talk to a server, but cannot prompt anyone. */
const pluginMs = 60_000;
/** Milliseconds before their expiry at which credentials are renewed. */
const marginMs = 30_000;

/** Credentials from a program (client.authentication.k8s.io), cached until they expire or are refused. */
export function execPlugin(
  config: ExecPluginConfig,
  directory: string,
  cluster: { readonly server: string; readonly authority: Buffer | undefined },
): CredentialSource {
  let kept: { readonly credentials: Promise<Credentials>; expires: number } | undefined;
  return (renew = false) => {
    if (kept && !renew && Date.now() < kept.expires) return kept.credentials;
    const asked = ask(config, directory, cluster);
    const entry = { credentials: asked.then(({ credentials }) => credentials), expires: Infinity };
    kept = entry;
    asked.then(
      ({ expires }) => {
        entry.expires = expires;
      },
      () => {
        kept = undefined;
      },
    );
    return entry.credentials;
  };
}

async function ask(
  config: ExecPluginConfig,
  directory: string,
  { server, authority }: { readonly server: string; readonly authority: Buffer | undefined },
): Promise<{ readonly credentials: Credentials; readonly expires: number }> {
  const { apiVersion, command, args, env, provideClusterInfo } = config;
  const cluster = { server, ...(authority ? { "certificate-authority-data": authority.toString("base64") } : {}) };
  const info = {
    apiVersion,
    kind: "ExecCredential",
    spec: { interactive: false, ...(provideClusterInfo === true ? { cluster } : {}) },
  };
  const variables = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
  const program = command.includes("/") ? path.resolve(directory, command) : command;
  const said = await run(config, [program, ...(args ?? [])], {
    ...process.env,
    ...variables,
    KUBERNETES_EXEC_INFO: JSON.stringify(info),
  });
  const parsed = execCredential.safeParse(parseJson(said));
  if (!parsed.success) throw failed(config, "its output is not an ExecCredential", parsed.error);
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp: end } = parsed.data.status;
  const expires = end === undefined ? Infinity : Date.parse(end) - marginMs;
  return {
    credentials: {
      ...(token === undefined ? {} : { token }),
      ...(cert === undefined || key === undefined ? {} : { certificate: { cert, key } }),
    },
    expires: Number.isNaN(expires) ? 0 : expires,
  };
}

function run(
  config: ExecPluginConfig,
  [program = "", ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      program,
      args,
      { env, timeout: pluginMs, killSignal: "SIGKILL" },
      (error, stdout, stderr) => {
        if (!error) resolve(stdout);
        else reject(failed(config, stderr.trim().slice(-500) || error.message, error));
      },
    );
    child.stdin?.end();
  });
}

function failed({ command, installHint }: ExecPluginConfig, why: string, cause: unknown): BackendUnavailableError {
  return new BackendUnavailableError(
    `The program ${command}, which provides the credentials for the cluster, failed: ${why}`,
    {
      remedy: installHint ?? "Log in with it, and check whether `kubectl get pods` works.",
      cause,
    },
  );
}
