import { createHash } from "node:crypto";
import { mkdir, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { rolldown, type Plugin } from "rolldown";

const directory = path.join(import.meta.dirname, "../node_modules/.cache/fenced-test");

/** A module finds the files beside it where they are, not beside the bundle. CommonJS modules have another name for that. */
const ownPaths: Plugin = {
  name: "own-paths",
  transform: (code, id) => {
    const withPaths = code
      .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href))
      .replaceAll("import.meta.dirname", JSON.stringify(path.dirname(id)));
    return /^(?:import|export)\b/m.test(code)
      ? withPaths
      : withPaths.replaceAll(/\b__dirname\b/g, JSON.stringify(path.dirname(id)));
  },
};

/**
 * A command for a program of the tests that is started more than once. The program and all that it imports are bundled now, into
 * one file, which starts in a fifth of the processor time that hundreds of TypeScript modules take.
 *
 * @param file - the program, in TypeScript.
 */
export async function bundledCommand(file: string, ...words: readonly string[]): Promise<[string, ...string[]]> {
  const bundle = await rolldown({
    input: file,
    platform: "node",
    resolve: { conditionNames: ["@fenced/source", "node", "import"] },
    // Native modules that packages can do without.
    external: /\.node$/,
    transform: { target: "node20" },
    plugins: [ownPaths],
  });
  const { output } = await bundle.generate({ format: "esm", codeSplitting: false });
  await bundle.close();
  const name = createHash("sha256").update(file).digest("hex").slice(0, 16);
  const place = path.join(directory, `${name}.mjs`);
  await mkdir(directory, { recursive: true });
  // Other test files may make the same program now, and start it.
  await writeFile(`${place}.${process.pid}`, output[0].code);
  await rename(`${place}.${process.pid}`, place);
  return [process.execPath, place, ...words];
}
