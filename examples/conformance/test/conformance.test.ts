// run by: test-an-executor.ts
// #region suite
import { after, describe, it } from "node:test"; // or `afterAll` from "vitest"
import { loadComponent, type CodeExecutor } from "@fenced/core";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { MyExecutor } from "../src/index.ts";

testCodeExecutor(
  { describe, it, afterAll: after },
  {
    name: "MyExecutor",
    create: (options) => new MyExecutor(options),
    load: (model) =>
      loadComponent<CodeExecutor>(model, {
        allow: ["my-executor"],
        importModule: () => import("../src/index.ts"),
      }),
    takesWorkDir: true,
    hostCommand: [process.execPath, "--import", "tsx", "test/fixtures/executor-host.ts"],
  },
);
// #endregion
