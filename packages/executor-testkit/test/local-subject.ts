import { join } from "node:path";
import { loadComponent, type CodeExecutor } from "@fenced/core";
import { bundledCommand } from "@fenced/test-support/bundled-command";
// Not by its name: executor-local depends on this package for its tests, and builds must not be circular.
import { LocalCommandLineCodeExecutor } from "../../executor-local/src/index.ts";
import type { ExecutorSubject } from "../src/index.ts";

/** An executor that passes, to be run as it is or to be broken. */
export const localSubject: ExecutorSubject = {
  name: "LocalCommandLineCodeExecutor",
  create: (options) => new LocalCommandLineCodeExecutor(options),
  load: (model) =>
    loadComponent<CodeExecutor>(model, { importModule: () => import("../../executor-local/src/index.ts") }),
  takesWorkDir: true,
  hostCommand: await bundledCommand(join(import.meta.dirname, "fixtures/local-host.ts")),
};
