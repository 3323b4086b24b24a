import { loadComponent, type CodeExecutor } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, place } from "@fenced/test-support";
import { describe, it } from "vitest";
import { hostCommand } from "./support/host-command.ts";

describe("executor-local", needs("python3", "bash", "node"), () => {
  testCodeExecutor(
    { describe, it },
    {
      name: "LocalCommandLineCodeExecutor",
      create: (options) => new LocalCommandLineCodeExecutor(options),
      load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("@fenced/executor-local") }),
      takesWorkDir: true,
      hostCommand: hostCommand("executor-host.ts"),
    },
    place(),
  );
});
