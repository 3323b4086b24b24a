import path from "node:path";
import { loadComponent, type CodeExecutor } from "@fenced/core";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { describe, it } from "vitest";
import { WasmCodeExecutor } from "../src/index.ts";
import { killInterpreter } from "./kill-interpreter.ts";

const host = path.join(import.meta.dirname, "fixtures/executor-host.ts");

testCodeExecutor(
  { describe, it },
  {
    name: "WasmCodeExecutor",
    create: (options) => new WasmCodeExecutor(options),
    load: (model) =>
      loadComponent<CodeExecutor>(model, {
        allow: ["@fenced/executor-wasm"],
        importModule: () => import("../src/index.ts"),
      }),
    takesWorkDir: false,
    hostCommand: [process.execPath, "--conditions=@fenced/source", "--import", "tsx", host],
    breakPlace: killInterpreter,
  },
);
