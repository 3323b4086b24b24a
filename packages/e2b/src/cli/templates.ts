import { type CodeExecutor, loadComponent } from "@fenced/core";
import type { SandboxRequest, SandboxTemplate } from "../e2b-handler-options.ts";
import type { CliOptions, GivenTemplate } from "./parse-options.ts";

/** The templates of the command line. */
export function templatesOf({ template, network }: CliOptions): Readonly<Record<string, SandboxTemplate>> {
  const given: readonly GivenTemplate[] = template.length > 0 ? template : [{ name: "base", source: "python:3-slim" }];
  return Object.fromEntries(
    given.map(({ name, source }) => [
      name,
      ({ allowInternetAccess }: SandboxRequest) => createExecutor(source, allowInternetAccess ? network : "none"),
    ]),
  );
}

function createExecutor(source: string, network: "open" | "none" | undefined): Promise<CodeExecutor> {
  const limits = network === undefined ? {} : { network };
  const component =
    source === "os-sandbox"
      ? {
          provider: "@fenced/executor-local:LocalCommandLineCodeExecutor",
          config: { isolation: "os-sandbox", ...limits },
        }
      : {
          provider: "@fenced/executor-docker:DockerCommandLineCodeExecutor",
          config: { image: source, workspacePath: "/home/user", ...limits },
        };
  return loadComponent<CodeExecutor>({ componentType: "code_executor", version: 1, ...component });
}
