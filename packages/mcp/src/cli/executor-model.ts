import { readFile } from "node:fs/promises";
import { type ComponentModel, componentModelSchema, type JsonObject } from "@fenced/core";
import * as z from "zod";
import type { CliOptions, ExecutorName } from "./parse-options.ts";
import { UsageError } from "./usage-error.ts";

/** An executor named on the command line rather than in a file. */
export type NamedExecutor = Exclude<ExecutorName, "auto">;

const providers: Readonly<Record<NamedExecutor, string>> = {
  "os-sandbox": "@fenced/executor-local:LocalCommandLineCodeExecutor",
  wasm: "@fenced/executor-wasm:WasmCodeExecutor",
  local: "@fenced/executor-local:LocalCommandLineCodeExecutor",
  docker: "@fenced/executor-docker:DockerCommandLineCodeExecutor",
  jupyter: "@fenced/executor-jupyter:JupyterCodeExecutor",
  aca: "@fenced/executor-aca:ACADynamicSessionsCodeExecutor",
  ssh: "@fenced/executor-ssh:SshCommandLineCodeExecutor",
};

/** Options that would make all sessions of a server share a workspace, session or container. */
const sharing = ["workDir", "sessionId", "kernelId", "containerName"] as const;

/**
 * Creates the component model of the executor that the command line requests.
 *
 * @throws UsageError if a file or an option contains invalid JSON, or an environment variable is missing.
 */
export async function executorModel(options: CliOptions): Promise<ComponentModel> {
  const model = await modelOf(options);
  refuseSharing(model.config, options);
  return model;
}

/** The command line's options for `openExecutor("auto")`, which validates them. */
export function fenceSettings(options: CliOptions): JsonObject {
  const settings = settingsOf(options);
  refuseSharing(settings, options);
  return settings;
}

function refuseSharing(config: JsonObject, options: CliOptions): void {
  const shared = sharing.find((name) => name in config);
  if (!options.http || shared === undefined) return;
  const place = options.executor === undefined ? "the component" : "--config";
  throw new UsageError(`With --http each session has its own executor; remove ${shared} from ${place}.`);
}

async function modelOf(options: CliOptions): Promise<ComponentModel> {
  const { executor, component = "" } = options;
  if (executor === undefined || executor === "auto") return readComponent(component);
  const config = {
    ...(executor === "aca" ? acaConfig() : {}),
    ...settingsOf(options),
    ...(executor === "os-sandbox" ? { isolation: executor } : {}),
  };
  return { provider: providers[executor], componentType: "code_executor", version: 1, config };
}

function settingsOf({ config, image, workDir, timeoutMs }: CliOptions): JsonObject {
  return {
    ...parseConfig(config),
    ...(image === undefined ? {} : { image }),
    ...(workDir === undefined ? {} : { workDir }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}

/** The npm package of a named executor. */
export function executorPackage(name: NamedExecutor): string {
  return providers[name].split(":")[0] ?? "";
}

async function readComponent(file: string): Promise<ComponentModel> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new UsageError(`Cannot read ${file}: ${reasonOf(error)}`);
  });
  const parsed = componentModelSchema.safeParse(parseJson(text, file));
  if (parsed.success) return parsed.data;
  throw new UsageError(
    `${file} is not a component model: ${z.prettifyError(parsed.error)}\nIt must contain what dumpComponent() returns.`,
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
    throw new UsageError(`${place} is not valid JSON: ${reasonOf(error)}`);
  }
}

function acaConfig(): JsonObject {
  const poolManagementEndpoint = process.env["ACA_POOL_MANAGEMENT_ENDPOINT"];
  if (poolManagementEndpoint === undefined) {
    throw new UsageError("Set ACA_POOL_MANAGEMENT_ENDPOINT to the session pool's endpoint for --executor aca.");
  }
  // Without it, the default Azure credential provides tokens.
  const token = process.env["ACA_TOKEN"] === undefined ? {} : { tokenVariable: "ACA_TOKEN" };
  return { poolManagementEndpoint, ...token };
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
