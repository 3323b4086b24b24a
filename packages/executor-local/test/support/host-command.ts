import path from "node:path";
import { bundledCommand } from "@fenced/test-support/bundled-command";

/** A command that runs one of the fixtures on the sources of the workspace. */
export function hostCommand(fixture: string): Promise<[string, ...string[]]> {
  return bundledCommand(path.join(import.meta.dirname, "../fixtures", fixture));
}
