import { readdirSync } from "node:fs";

/** The TypeScript files directly in a folder, in alphabetical order. */
export function sourceFiles(folder: string): string[] {
  return readdirSync(folder)
    .filter((file) => file.endsWith(".ts"))
    .toSorted();
}
