import type { CaseContext } from "./case-context.ts";
import type { ChildKind } from "./languages/fixture-language.ts";

/**
 * How to start a process that must survive the end of later blocks. In a session, an interrupt reaches the whole
 * process group, as in a terminal, so the process must have left that group.
 */
export function settledKind({ capabilities, language }: CaseContext): ChildKind {
  return capabilities.stateful && language.childKinds.includes("new-session") ? "new-session" : "child";
}
