import { readdirSync } from "node:fs";

/** The TypeScript files that stand directly in a folder, in alphabetical order. */
export function sourceFiles(folder: string): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".ts"))
    .toSorted();
}
