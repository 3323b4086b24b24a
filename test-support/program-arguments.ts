import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.join(import.meta.dirname, "..");
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
  const [, folder, name] = /^([^/]+\/[^/]+)\/src\/(.+)\.ts$/.exec(path.relative(root, file)) ?? [];
  if (process.env.FENCED_BUILT !== undefined && folder !== undefined) {
    return [...importing(imports), path.join(root, folder, `dist/${name}.js`)];
  }
  return ["--conditions=@fenced/source", ...importing([tsx, ...imports]), file];
}

function importing(modules: readonly string[]): string[] {
  return modules.flatMap((module) => ["--import", module]);
}
