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

/** Starts each template once, and says what does not start: an image that does not exist, a sandbox that this machine cannot have. */
export async function checkTemplates(
  options: CliOptions,
  say: (message: string) => void,
  signal: AbortSignal,
): Promise<void> {
  // It must not outlive this program.
  const templates = templatesOf({ ...options, state: undefined });
  for (const [template, create] of Object.entries(templates)) {
    try {
      await using executor = await create({ template, env: {}, allowInternetAccess: true, restore: undefined, signal });
      await executor.start({ signal });
    } catch (error) {
      if (signal.aborted) return;
      const reason = error instanceof Error ? error.message : String(error);
      say(`Warning: the template ${template} cannot be started: ${reason}`);
    }
  }
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
