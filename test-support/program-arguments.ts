import path from "node:path";
import { fileURLToPath } from "node:url";

/** The full path instead of a name on the PATH, because some tests replace the PATH. */
const tsx: string = import.meta.resolve("tsx");

/**
 * The arguments with which Node runs a program of a workspace package: its source, or where `FENCED_BUILT` is set, as in CI, what
 * was built from it, which starts in a third of the processor time.
 *
 * @param source - the URL of the program's source file. Those of tests are never built.
 * @param imports - the URLs of modules to load before the program.
 */
export function programArguments(source: URL, ...imports: readonly string[]): readonly string[] {
  const file = fileURLToPath(source);
  const built = file.replace(`${path.sep}src${path.sep}`, `${path.sep}dist${path.sep}`).replace(/\.ts$/, ".js");
  const isBuilt = process.env.FENCED_BUILT !== undefined && !file.includes(`${path.sep}test${path.sep}`);
  if (isBuilt) return [...importing(imports), built];
  return ["--conditions=@fenced/source", ...importing([tsx, ...imports]), file];
}

function importing(modules: readonly string[]): string[] {
  return modules.flatMap((module) => ["--import", module]);
}
