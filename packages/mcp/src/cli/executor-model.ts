import { readFile } from "node:fs/promises";
import { type ComponentModel, componentModelSchema, type JsonObject } from "@fenced/core";
import * as z from "zod";
import type { CliOptions, ExecutorName } from "./parse-options.ts";
import { UsageError } from "./usage-error.ts";

const providers: Readonly<Record<ExecutorName, string>> = {
  local: "@fenced/executor-local:LocalCommandLineCodeExecutor",
  docker: "@fenced/executor-docker:DockerCommandLineCodeExecutor",
  jupyter: "@fenced/executor-jupyter:JupyterCodeExecutor",
  aca: "@fenced/executor-aca:ACADynamicSessionsCodeExecutor",
  ssh: "@fenced/executor-ssh:SshCommandLineCodeExecutor",
};

/** Settings that would give all executors of a server one workspace, session or container. */
const sharing = ["workDir", "sessionId", "kernelId", "containerName"] as const;

/**
 * The component model of the executor that the command line asks for.
 *
 * @throws UsageError if a file or a text in it is no JSON of the right shape, or the environment lacks something.
 */
export async function executorModel(options: CliOptions): Promise<ComponentModel> {
  const model = await modelOf(options);
  const shared = sharing.find((name) => name in model.config);
  if (!options.http || shared === undefined) return model;
  const place = options.executor === undefined ? "the component" : "--config";
  throw new UsageError(`With --http each session has an executor of its own: leave ${shared} out of ${place}.`);
}

async function modelOf(options: CliOptions): Promise<ComponentModel> {
  const { executor, component = "" } = options;
  if (executor === undefined) return readComponent(component);
  const config = {
    ...(executor === "aca" ? acaConfig() : {}),
    ...parseConfig(options.config),
    ...(options.image === undefined ? {} : { image: options.image }),
    ...(options.workDir === undefined ? {} : { workDir: options.workDir }),
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
  };
  return { provider: providers[executor], componentType: "code_executor", version: 1, config };
}

/** The npm package of an executor that has a name here. */
export function executorPackage(name: ExecutorName): string {
  return providers[name].split(":")[0] ?? "";
}

async function readComponent(file: string): Promise<ComponentModel> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new UsageError(`${file} cannot be read: ${reasonOf(error)}`);
  });
  const parsed = componentModelSchema.safeParse(parseJson(text, file));
  if (parsed.success) return parsed.data;
  throw new UsageError(
    `${file} is no component model: ${z.prettifyError(parsed.error)}\nWrite what dumpComponent returns.`,
  );
}

function parseConfig(text: string | undefined): JsonObject {
  if (text === undefined) return {};
  const parsed = z.record(z.string(), z.json()).safeParse(parseJson(text, "--config"));
  if (parsed.success) return parsed.data;
  throw new UsageError('--config must be a JSON object, such as {"network":"none"}.');
}

function parseJson(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${place} is no JSON: ${reasonOf(error)}`);
  }
}

function acaConfig(): JsonObject {
  const poolManagementEndpoint = process.env["ACA_POOL_MANAGEMENT_ENDPOINT"];
  if (poolManagementEndpoint === undefined) {
    throw new UsageError("--executor aca needs the session pool's address in ACA_POOL_MANAGEMENT_ENDPOINT.");
  }
  // Azure's own tokens come from the default credential.
  const token = process.env["ACA_TOKEN"] === undefined ? {} : { tokenVariable: "ACA_TOKEN" };
  return { poolManagementEndpoint, ...token };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
