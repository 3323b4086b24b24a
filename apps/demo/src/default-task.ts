import { fileURLToPath } from "node:url";

/** The demo's own question. Its answer takes computing: the species with the most grams is not the one. */
export const defaultTask: string = [
  "penguins.json lists 344 penguins of Palmer Station, Antarctica.",
  "In which species do the males outweigh the females by the largest percentage, on average?",
  "And how many grams is that?",
].join("\n");

/** The data that lies in the agents' workspace. */
export const dataFile: string = fileURLToPath(new URL("../data/penguins.json", import.meta.url));

/** The language that a model should rather write, of those that run here. */
export function preferredLanguage(languages: readonly string[]): string | undefined {
  return ["python", "javascript"].find((name) => languages.includes(name)) ?? languages[0];
}

/** The recorded coder for a place with these languages. It may be missing: there is one for Python and JavaScript. */
export function recordFor(languages: readonly string[]): string {
  return fileURLToPath(new URL(`../records/penguins-${preferredLanguage(languages)}.jsonl`, import.meta.url));
}
