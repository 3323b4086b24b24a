import type { CodeExecutor } from "@fenced/core";
import type { SandboxRequest, SandboxTemplate } from "../e2b-handler-options.ts";
import type { CliOptions, GivenTemplate } from "./parse-options.ts";

/** How long sandboxes wait for the next server, in milliseconds. */
const keepAliveMs = 3_600_000;

/** The templates of the command line. */
export function templatesOf(options: CliOptions): Readonly<Record<string, SandboxTemplate>> {
  const { template } = options;
  const given: readonly GivenTemplate[] = template.length > 0 ? template : [{ name: "base", source: "python:3-slim" }];
  return Object.fromEntries(
    given.map(({ name, source }) => [name, (request: SandboxRequest) => createExecutor(source, request, options)]),
  );
}

async function createExecutor(
  source: string,
  { allowInternetAccess, restore }: SandboxRequest,
  { network: given, state }: CliOptions,
): Promise<CodeExecutor> {
  const network = allowInternetAccess ? given : "none";
  const settings = {
    ...(network !== undefined && { network }),
    ...(restore && { restore }),
    ...(state !== undefined && { keepAliveMs }),
  };
  if (source === "os-sandbox") {
    const { LocalCommandLineCodeExecutor } = await import("@fenced/executor-local");
    return new LocalCommandLineCodeExecutor({ isolation: "os-sandbox", ...settings });
  }
  const { DockerCommandLineCodeExecutor } = await import("@fenced/executor-docker");
  return new DockerCommandLineCodeExecutor({ image: source, workspacePath: "/home/user", ...settings });
}
