import path from "node:path";
import { loadComponent, type CodeExecutor } from "@fenced/core";
import { LocalCommandLineCodeExecutor } from "@fenced/executor-local";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { needs, place } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { afterAll, describe, it } from "vitest";

const hostCommand = await bundledCommand(path.join(import.meta.dirname, "fixtures/executor-host.ts"));

describe("executor-local", needs("python3", "bash", "node"), () => {
  testCodeExecutor(
    { describe, it, afterAll },
    {
      name: "LocalCommandLineCodeExecutor",
      create: (options) => new LocalCommandLineCodeExecutor(options),
      load: (model) => loadComponent<CodeExecutor>(model, { importModule: () => import("@fenced/executor-local") }),
      takesWorkDir: true,
      hostCommand,
    },
    place(),
  );
});
