import { createHash } from "node:crypto";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BackendUnavailableError } from "@fenced/core";
import { DockerCommandLineCodeExecutor, type DockerExecutorOptions } from "../../src/index.ts";

/** An environment in which nothing says where a daemon is, until it is restored. */
export interface DockerEnvironment {
  /** The directory that `DOCKER_CONFIG` names; deleted in the end. */
  readonly directory: string;
  /** Creates a Docker context and selects it. */
  useContext(name: string, host: string, certPath?: string): Promise<void>;
  restore(): Promise<void>;
}

const variables = ["DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONFIG", "PATH"];

/** Removes all Docker variables from the environment of this process. */
export async function cleanDockerEnvironment(): Promise<DockerEnvironment> {
  const directory = await mkdtemp(join(tmpdir(), "fenced-test-"));
  const saved = variables.map((name) => [name, process.env[name]] as const);
  for (const name of variables) if (name !== "PATH") Reflect.deleteProperty(process.env, name);
  process.env["DOCKER_CONFIG"] = directory;
  return {
    directory,
    async useContext(name, host, certPath) {
      const id = createHash("sha256").update(name).digest("hex");
      const meta = join(directory, "contexts/meta", id);
      await mkdir(meta, { recursive: true });
      await writeFile(join(meta, "meta.json"), JSON.stringify({ Name: name, Endpoints: { docker: { Host: host } } }));
      const certificates = join(directory, "contexts/tls", id, "docker");
      if (certPath !== undefined) await cp(certPath, certificates, { recursive: true });
      await writeFile(join(directory, "config.json"), JSON.stringify({ currentContext: name }));
    },
    async restore() {
      for (const [name, value] of saved) {
        if (value === undefined) Reflect.deleteProperty(process.env, name);
        else process.env[name] = value;
      }
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** The error message of an executor that finds no daemon. */
export async function startFailure(options: DockerExecutorOptions = {}): Promise<string> {
  const error: unknown = await new DockerCommandLineCodeExecutor(options).start().catch((thrown: unknown) => thrown);
  if (BackendUnavailableError.isInstance(error)) return error.message;
  throw new Error(`expected a BackendUnavailableError, not ${String(error)}`);
}
