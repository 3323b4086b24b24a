import type { FunctionWithRequirements } from "@fenced/core";
import type { LanguageCommand } from "@fenced/executor-kit";
import type { KubernetesExecutorOptions } from "./kubernetes-executor-options.ts";

/** What a session is made for. */
export interface SessionRequest {
  readonly options: KubernetesExecutorOptions;
  /** The executor's id. */
  readonly id: string;
  readonly functions: readonly FunctionWithRequirements[];
  readonly functionsModule: string;
  readonly table: Readonly<Record<string, LanguageCommand>>;
  /** Languages whose command the user gave. */
  readonly givenLanguages: ReadonlySet<string>;
  /** The pod was lost and replaced: all that was in it is gone. */
  readonly onReplaced: () => void;
  /** The pod cannot be used any more: all that was in it is gone. */
  readonly onLost: (reason: string) => void;
}
