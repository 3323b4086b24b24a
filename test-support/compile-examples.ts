import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { rolldown } from "rolldown";
import { ownPaths } from "./bundled-command.ts";

/**
 * Compiles examples. They then use the packages as they were built, and start in half the processor time. Leaves out examples
 * that start themselves or other sources, which need Node's original options.
 *
 * @returns the compiled programs, by the examples' file names.
 */
export async function compileExamples(folder: string, files: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const chosen = files.filter(
    (file) => !/execArgv|import\.meta\.filename/.test(readFileSync(join(folder, file), "utf8")),
  );
  if (chosen.length === 0) return new Map();
  const directory = join(folder, "node_modules/.cache/fenced-examples");
  await rm(directory, { recursive: true, force: true });
  const bundle = await rolldown({
    input: Object.fromEntries(chosen.map((file) => [file, join(folder, file)])),
    platform: "node",
    // The packages that they import, except for one that has no build, and for helpers that compiling adds.
    external: (id) => !/^[./\0]|^@oxc-project\/|^@fenced\/test-support/.test(id),
    transform: { target: "node20" },
    plugins: [ownPaths],
  });
  await bundle.write({ format: "esm", dir: directory, entryFileNames: "[name].mjs" });
  await bundle.close();
  return new Map(chosen.map((file) => [file, join(directory, `${file}.mjs`)]));
}
