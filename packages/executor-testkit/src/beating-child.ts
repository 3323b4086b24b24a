import type { CaseContext } from "./case-context.ts";
import { startsProcesses } from "./needs.ts";

/** The statements that start a child which beats in `child`, and the files in which there are heartbeats then. */
export interface BeatingChild {
  readonly statements: readonly string[];
  readonly files: readonly string[];
}

/** A child beside the main program, for cases that look at both; none where there are no processes. */
export function beatingChild(kit: CaseContext): BeatingChild {
  if (startsProcesses(kit) !== undefined) return { statements: [], files: [] };
  return { statements: [kit.language.spawnBeating("child", "child")], files: ["child"] };
}
