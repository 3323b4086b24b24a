import path from "node:path";
import { loadComponent, type CodeExecutor } from "@fenced/core";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { afterAll, describe, it } from "vitest";
import { ExampleCodeExecutor } from "../src/index.ts";

const host = path.join(import.meta.dirname, "fixtures/executor-host.ts");

testCodeExecutor(
  { describe, it, afterAll },
  {
    name: "ExampleCodeExecutor",
    create: (options) => new ExampleCodeExecutor(options),
    load: (model) =>
      loadComponent<CodeExecutor>(model, {
        allow: ["@fenced/executor-example"],
        importModule: () => import("../src/index.ts"),
      }),
    takesWorkDir: false,
    hostCommand: [process.execPath, "--conditions=@fenced/source", "--import", "tsx", host],
  },
  { concurrent: true },
);
