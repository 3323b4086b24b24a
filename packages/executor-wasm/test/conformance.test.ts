import path from "node:path";
import { loadComponent, type CodeExecutor } from "@fenced/core";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { afterAll, describe, it } from "vitest";
import { WasmCodeExecutor } from "../src/index.ts";
import { killInterpreter } from "./kill-interpreter.ts";

const hostCommand = await bundledCommand(path.join(import.meta.dirname, "fixtures/executor-host.ts"));

testCodeExecutor(
  { describe, it, afterAll },
  {
    name: "WasmCodeExecutor",
    create: (options) => new WasmCodeExecutor(options),
    load: (model) =>
      loadComponent<CodeExecutor>(model, {
        allow: ["@fenced/executor-wasm"],
        importModule: () => import("../src/index.ts"),
      }),
    takesWorkDir: false,
    hostCommand,
    breakPlace: killInterpreter,
  },
);
