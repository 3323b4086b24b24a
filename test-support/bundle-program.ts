import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { rolldown, type Plugin } from "rolldown";
import { reading } from "../scripts/inline-programs.mjs";

/** What the build of the packages does, too: see `scripts/inline-programs.mjs`. */
const inlinePrograms: Plugin = {
  name: "inline-programs",
  transform: async (code, id) => {
    const files = [...code.matchAll(reading)].map(([, file = ""]) => path.join(path.dirname(id), file));
    const texts = await Promise.all(files.map((file) => readFile(file, "utf8")));
    return code.replaceAll(reading, () => JSON.stringify(texts.shift()));
  },
};

/**
 * Bundles a program as one of its users would do it, with nothing left out. In CommonJS, `import.meta.url` is undefined, as it is
 * with esbuild.
 *
 * @param program - in TypeScript.
 * @param file - where to put the bundle.
 * @returns the names of the packages in it.
 */
export async function bundleProgram(program: string, file: string, format: "esm" | "cjs"): Promise<string[]> {
  const bundle = await rolldown({
    input: program,
    platform: "node",
    resolve: { conditionNames: ["@fenced/source", "node", "import"] },
    transform: { target: "node20", define: format === "cjs" ? { "import.meta.url": "undefined" } : {} },
    plugins: [inlinePrograms],
  });
  const { output } = await bundle.generate({ format, codeSplitting: false });
  await bundle.close();
  const [{ code, moduleIds }] = output;
  await writeFile(file, code);
  return moduleIds.map((id) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1] ?? "");
}
