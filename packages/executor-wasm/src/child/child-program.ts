import { readFileSync } from "node:fs";

const wire: string = readFileSync(new URL("./wire.mjs", import.meta.url), "utf8");
const harden: string = readFileSync(new URL("./harden.mjs", import.meta.url), "utf8");
const limitMemory: string = readFileSync(new URL("./limit-memory.mjs", import.meta.url), "utf8");
const hostFileSystem: string = readFileSync(new URL("./host-file-system.mjs", import.meta.url), "utf8");
const python: string = readFileSync(new URL("./python.mjs", import.meta.url), "utf8");

/** The Python program that runs blocks. */
export const blocksProgram: string = readFileSync(new URL("./blocks.py", import.meta.url), "utf8");

/**
 * The program of the Python interpreter's process, as a single module, since that process may not read any of our
 * files.
 */
export const pythonProcess: string = asOneModule([wire, harden, limitMemory, hostFileSystem, python]);

/** Joins modules that import from each other. */
function asOneModule(modules: readonly string[]): string {
  const joined = modules.join("\n").replaceAll(/^import .* from "\.\/.*";$/gm, "");
  return joined.replaceAll(/^export /gm, "");
}
