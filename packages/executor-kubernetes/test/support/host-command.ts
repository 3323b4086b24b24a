import { join } from "node:path";

/** The command that runs a fixture program from the sources. */
export function hostCommand(fixture: string, ...words: readonly string[]): [string, ...string[]] {
  const file = join(import.meta.dirname, "../fixtures", fixture);
  return [process.execPath, "--import", "tsx", "--conditions=@fenced/source", file, ...words];
}
