import path from "node:path";
import { loadComponent, type CodeExecutor, type ComponentModel } from "@fenced/core";
import { testCodeExecutor } from "@fenced/executor-testkit";
import { place, variant } from "@fenced/test-support";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import { afterAll, describe, it } from "vitest";
import { WasmCodeExecutor, type WasmLanguage } from "../src/index.ts";
import { killInterpreter } from "./kill-interpreter.ts";

const languages: readonly WasmLanguage[] = ["javascript", "typescript"];
const load = (model: ComponentModel): Promise<CodeExecutor> =>
  loadComponent<CodeExecutor>(model, {
    allow: ["@fenced/executor-wasm"],
    importModule: () => import("../src/index.ts"),
  });
const hostCommand = await bundledCommand(path.join(import.meta.dirname, "fixtures/executor-host.ts"));
const common = { load, takesWorkDir: false, breakPlace: killInterpreter };

testCodeExecutor(
  { describe, it, afterAll },
  { ...common, name: "WasmCodeExecutor", create: (options) => new WasmCodeExecutor(options), hostCommand },
  place(),
);

// The suite writes its programs in one language: here it is JavaScript.
testCodeExecutor(
  { describe, it, afterAll },
  {
    ...common,
    name: "WasmCodeExecutor without Python",
    create: (options) => new WasmCodeExecutor({ languages, ...options }),
    hostCommand: [...hostCommand, ...languages],
  },
  variant("code", "state", "host functions"),
);
