import path from "node:path";

/** A command that runs one of the fixtures on the sources of the workspace. */
export function hostCommand(fixture: string): [string, ...string[]] {
  const file = path.join(import.meta.dirname, "../fixtures", fixture);
  return [process.execPath, "--conditions=@fenced/source", "--import", "tsx", file];
}
