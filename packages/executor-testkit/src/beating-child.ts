import type { CaseContext } from "./case-context.ts";
import { startsProcesses } from "./needs.ts";

/** Statements that start a child that beats in `child`, and the files that then contain heartbeats. */
export interface BeatingChild {
  readonly statements: readonly string[];
  readonly files: readonly string[];
}

/** A child of the main program, for cases that check both; empty where blocks cannot start processes. */
export function beatingChild(kit: CaseContext): BeatingChild {
  if (startsProcesses(kit) !== undefined) return { statements: [], files: [] };
  return { statements: [kit.language.spawnBeating("child", "child")], files: ["child"] };
}
