import { createHash } from "node:crypto";
import { access, mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { Plugin } from "rolldown";

const modules = path.join(import.meta.dirname, "../node_modules");
/** The paths of the bundles of this process's programs. */
const bundles = new Map<string, Promise<string>>();
const directory = path.join(modules, ".cache/fenced-test");
/** What pnpm writes when it has installed something. */
const installed = path.join(modules, ".modules.yaml");

/** The files that a bundle was made from, and when. */
interface Made {
  readonly startedAt: number;
  readonly files: readonly string[];
}

/** Lets modules find files beside their source, not beside the bundle. CommonJS modules call that place `__dirname`. */
export const ownPaths: Plugin = {
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
 * A command for a test program that is started more than once. The program and everything that it imports are bundled into one
 * file, which starts in a fifth of the processor time that hundreds of TypeScript modules take. The bundle is rebuilt when one of
 * them has changed.
 *
 * @param file - the program, in TypeScript.
 */
export async function bundledCommand(file: string, ...words: readonly string[]): Promise<[string, ...string[]]> {
  const bundle = bundles.get(file) ?? bundleOf(file);
  bundles.set(file, bundle);
  return [process.execPath, await bundle, ...words];
}

async function bundleOf(file: string): Promise<string> {
  const name = createHash("sha256").update(file).digest("hex").slice(0, 16);
  const place = path.join(directory, `${name}.mjs`);
  if (!(await isUpToDate(place))) await makeBundle(file, place);
  return place;
}

async function isUpToDate(place: string): Promise<boolean> {
  try {
    const { startedAt, files } = JSON.parse(await readFile(`${place}.json`, "utf8")) as Made;
    const changes = await Promise.all(files.map(async (each) => (await stat(each)).mtimeMs));
    await access(place);
    return changes.every((time) => time < startedAt);
  } catch {
    return false;
  }
}

async function makeBundle(file: string, place: string): Promise<void> {
  const startedAt = Date.now();
  // Imported late, because most test files find a bundle that another one has made.
  const { rolldown } = await import("rolldown");
  const bundle = await rolldown({
    input: file,
    platform: "node",
    resolve: { conditionNames: ["@fenced/source", "node"] },
    // Native modules that packages can do without.
    external: /\.node$/,
    transform: { target: "node20" },
    plugins: [ownPaths],
  });
  const { output } = await bundle.generate({ format: "esm", codeSplitting: false });
  await bundle.close();
  const [{ code, moduleIds }] = output;
  const made: Made = { startedAt, files: [installed, ...moduleIds.filter((id) => path.isAbsolute(id))] };
  await mkdir(directory, { recursive: true });
  await putInPlace(place, code);
  await putInPlace(`${place}.json`, JSON.stringify(made));
}

/** Replaces the file in one step: other test files may be building or starting the same program. */
async function putInPlace(place: string, text: string): Promise<void> {
  await writeFile(`${place}.${process.pid}`, text);
  await rename(`${place}.${process.pid}`, place);
}
