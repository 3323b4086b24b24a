import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { build, transform, type Plugin as EsbuildPlugin } from "esbuild";
import { rolldown, type Plugin } from "rolldown";
import { reading } from "../scripts/inline-programs.mjs";

/** The formats of bundles. */
export type BundleFormat = "esm" | "cjs";

/** What makes a bundle: takes the program, in TypeScript, and the path of the bundle; returns the names of the packages in it. */
type Bundler = (program: string, file: string, format: BundleFormat) => Promise<string[]>;

/** Packages are their sources, as everywhere in tests. */
const conditions = ["@fenced/source", "node", "import"];
const target = "node20";

/** What libraries in CommonJS need in a module of esbuild's: `docs/bundlers.md` gives it to users. */
export const esbuildBanner =
  'import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url);';

/** What the build of the packages does, too: see `scripts/inline-programs.mjs`. */
async function withPrograms(code: string, file: string): Promise<string> {
  const programs = [...code.matchAll(reading)].map(([, program = ""]) => path.join(path.dirname(file), program));
  const texts = await Promise.all(programs.map((each) => readFile(each, "utf8")));
  return code.replaceAll(reading, () => JSON.stringify(texts.shift()));
}

const forRolldown: Plugin = { name: "inline-programs", transform: withPrograms };

const forEsbuild: EsbuildPlugin = {
  name: "inline-programs",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.ts$/ }, async ({ path: file }) => ({
      contents: await withPrograms(await readFile(file, "utf8"), file),
      loader: "ts",
    }));
  },
};

function packageOf(module: string): string {
  return /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(module)?.[1] ?? "";
}

/**
 * Bundle a program as one of its users would do it, with nothing left out. In CommonJS, `import.meta.url` is undefined: esbuild
 * makes it so, and Rolldown is told to.
 */
export const bundlers = {
  Rolldown: async (program, file, format) => {
    const bundle = await rolldown({
      input: program,
      platform: "node",
      resolve: { conditionNames: conditions },
      transform: { target, define: format === "cjs" ? { "import.meta.url": "undefined" } : {} },
      plugins: [forRolldown],
    });
    const { output } = await bundle.generate({ format, codeSplitting: false });
    await bundle.close();
    const [{ code, moduleIds }] = output;
    await writeFile(file, code);
    return moduleIds.map(packageOf);
  },

  esbuild: async (program, file, format) => {
    const { metafile } = await build({
      entryPoints: [program],
      outfile: file,
      bundle: true,
      platform: "node",
      format,
      target,
      conditions,
      banner: format === "esm" ? { js: esbuildBanner } : {},
      // It warns of `import.meta` in CommonJS.
      logLevel: "error",
      metafile: true,
      plugins: [forEsbuild],
    });
    return Object.keys(metafile.inputs).map(packageOf);
  },
} satisfies Readonly<Record<string, Bundler>>;

/** A program in TypeScript as JavaScript, with its imports as they are. */
export async function withoutTypes(program: string): Promise<string> {
  const { code } = await transform(await readFile(program, "utf8"), { loader: "ts", target });
  return code;
}
