import type { CaseContext } from "./case-context.ts";
import type { ChildKind } from "./languages/fixture-language.ts";

/**
 * How a program starts a process that shall live on while later blocks are ended. An interrupt reaches the whole
 * process group of a session, as it does at a terminal, so there a process must have left it.
 */
export function settledKind({ capabilities, language }: CaseContext): ChildKind {
  return capabilities.stateful && language.childKinds.includes("new-session") ? "new-session" : "child";
}
