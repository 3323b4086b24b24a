import { readFileSync } from "node:fs";

/** Shell functions that remove trees, and never what code has mounted in them: `remove_trees FILE…`. */
export const removalFunctions: string = readFileSync(new URL("./removal.sh", import.meta.url), "utf8");
