import type { FunctionWithRequirements } from "@fenced/core";
import type { LanguageCommand } from "@fenced/executor-kit";
import type { DockerExecutorOptions } from "./docker-executor-options.ts";

/** The settings of a session. */
export interface SessionRequest {
  readonly options: DockerExecutorOptions;
  /** The executor's id. */
  readonly id: string;
  readonly containerName: string;
  readonly functions: readonly FunctionWithRequirements[];
  readonly functionsModule: string;
  readonly table: Readonly<Record<string, LanguageCommand>>;
  /** Languages whose command the user gave. */
  readonly givenLanguages: ReadonlySet<string>;
  /** Called when the container broke down and was replaced: everything in it except the work directory is gone. */
  readonly onReplaced: () => void;
  /** Called when the container can no longer be used: everything in it except the work directory is gone. */
  readonly onLost: (reason: string) => void;
}
