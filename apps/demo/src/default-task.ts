import { fileURLToPath } from "node:url";
import type { ExecutorName } from "./open-executor.ts";

const question = [
  "penguins.json lists 344 penguins of Palmer Station, Antarctica.",
  "In which species do the males outweigh the females by the largest percentage, on average?",
  "And how many grams is that?",
].join("\n");

/** Where the demo runs. */
export interface DemoPlace {
  readonly executor: ExecutorName;
  /** On the page, which shows pictures. */
  readonly web: boolean;
}

/**
 * The demo's own question. The answer must be computed: it is not the species with the largest difference in grams.
 * Asks for a chart where charts can be shown.
 */
export function defaultTask({ executor, web }: DemoPlace): string {
  return web || executor === "jupyter" ? `${question}\nShow it in a chart, too.` : question;
}

/** The data in the agents' workspace. */
export const dataFile: string = fileURLToPath(new URL("../data/penguins.json", import.meta.url));

/** The language to prefer of those that run here. */
export function preferredLanguage(languages: readonly string[]): string | undefined {
  return ["python", "javascript"].find((name) => languages.includes(name)) ?? languages[0];
}

/** The file with the recorded coder for these languages. It only exists for Python and JavaScript. */
export function recordFor({ executor, web }: DemoPlace, languages: readonly string[]): string {
  const inLanguage = `${preferredLanguage(languages)}${web ? "-chart" : ""}`;
  const name = executor === "jupyter" ? "jupyter" : inLanguage;
  return fileURLToPath(new URL(`../records/penguins-${name}.jsonl`, import.meta.url));
}
