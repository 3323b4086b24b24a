import { join } from "node:path";
import { FunctionWithRequirements } from "@fenced/core";
import { bundledCommand } from "@fenced/test-support/bundled-command";
import type { BaseExecutorOptions } from "../../executor-kit/src/index.ts";
import type { ExecutorSubject } from "../src/index.ts";
import { StatefulPythonExecutor } from "./stateful-python-executor.ts";

/** An executor of the other kind: one session for all blocks. */
export const statefulSubject: ExecutorSubject = {
  name: "StatefulPythonExecutor",
  create: (options) => new StatefulPythonExecutor(options),
  load: ({ config: { functions, ...config } }) =>
    new StatefulPythonExecutor({
      ...(config as BaseExecutorOptions),
      ...(functions === undefined
        ? {}
        : { functions: (functions as []).map((json) => FunctionWithRequirements.fromJSON(json)) }),
    }),
  takesWorkDir: false,
  hostCommand: await bundledCommand(join(import.meta.dirname, "fixtures/stateful-host.ts")),
};
