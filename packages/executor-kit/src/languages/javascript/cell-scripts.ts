import { readFileSync } from "node:fs";

const scripts: string = readFileSync(new URL("./scripts.mjs", import.meta.url), "utf8");
const typeScript: string = readFileSync(new URL("./typescript.mjs", import.meta.url), "utf8");

/**
 * The text of a module that turns blocks of JavaScript into scripts, whose declarations are still there for the next block, and strips
 * the types from TypeScript: `scriptOf`, `isModule`, `TextError` and `typeStripper`, which needs `Script` of `node:vm`.
 */
export const cellScripts: string = asOneModule([scripts, typeScript]);

/** Joins the texts of modules that import from each other: without what they import from files, and what they export. */
export function asOneModule(modules: readonly string[]): string {
  const joined = modules.join("\n").replaceAll(/^import .* from "\.\.?\/.*";$/gm, "");
  return joined.replaceAll(/^export /gm, "");
}
