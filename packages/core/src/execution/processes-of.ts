import { InvalidInputError } from "../errors/invalid-input-error.ts";
import type { CodeExecutor } from "./code-executor.ts";
import type { ExecutorProcesses } from "./executor-processes.ts";

/** The programs of an executor that is to be a framework's sandbox. @throws InvalidInputError if it cannot start any. */
export function processesOf({ processes }: CodeExecutor): ExecutorProcesses {
  if (processes) return processes;
  throw new InvalidInputError("This executor cannot start programs, so it cannot be used as a sandbox", {
    remedy:
      "Use one whose `capabilities.processes` is true, such as LocalCommandLineCodeExecutor or DockerCommandLineCodeExecutor.",
  });
}
