import type { LanguageCommand } from "@fenced/executor-kit";
import type { ContainerInventory } from "./run/block-runner.ts";

/** A command whose program is in the container. */
export interface ContainerLanguage {
  readonly extension: string;
  readonly command: readonly string[];
}

/** Which languages the container can run, and why not the others. */
export interface ContainerLanguages {
  readonly found: ReadonlyMap<string, ContainerLanguage>;
  /** Language to a sentence that says what is missing and what to do. */
  readonly missing: ReadonlyMap<string, string>;
}

/** The programs that have to be looked for in the container. */
export function programsOf(table: Readonly<Record<string, LanguageCommand>>): string[] {
  return [...new Set([...Object.values(table).map(({ command }) => command[0] ?? ""), "python", "rm"])];
}

/**
 * Finds the languages of `table` in a container.
 *
 * @param given - languages whose command the user gave; it is taken as it is.
 */
export function findLanguages(
  table: Readonly<Record<string, LanguageCommand>>,
  given: ReadonlySet<string>,
  inventory: ContainerInventory,
  image: string,
): ContainerLanguages {
  const found = new Map<string, ContainerLanguage>();
  const missing = new Map<string, string>();
  for (const [language, { extension, command }] of Object.entries(table)) {
    const own = given.has(language);
    const program = findProgram(language, command[0] ?? "", inventory, own);
    const words = own ? command.slice(1) : nodeWords(language, command.slice(1), inventory.nodeVersion);
    if (program !== undefined && words !== undefined) found.set(language, { extension, command: [program, ...words] });
    else missing.set(language, missingSentence(language, command[0] ?? "", image));
  }
  return { found, missing };
}

function findProgram(
  language: string,
  name: string,
  { programs }: ContainerInventory,
  own: boolean,
): string | undefined {
  return programs.get(name) ?? (language === "python" && !own ? programs.get("python") : undefined);
}

/** Node's arguments as far as its version knows them; `undefined` if it cannot run the language. */
function nodeWords(language: string, words: readonly string[], version = ""): readonly string[] | undefined {
  if (language !== "javascript" && language !== "typescript") return words;
  const [, major = 0, minor = 0] = (/^v(\d+)\.(\d+)/.exec(version) ?? []).map(Number);
  const known = words.filter((word) => !word.startsWith("--disable-warning=") || disablesWarnings(major, minor));
  if (language === "javascript") return known;
  const quiet = "--disable-warning=ExperimentalWarning";
  if (major > 23 || (major === 23 && minor >= 6) || (major === 22 && minor >= 18)) return [...known, quiet];
  if (major === 23 || (major === 22 && minor >= 6)) return [...known, quiet, "--experimental-strip-types"];
  return undefined;
}

function disablesWarnings(major: number, minor: number): boolean {
  return major > 21 || (major === 21 && minor >= 3) || (major === 20 && minor >= 11);
}

function missingSentence(language: string, program: string, image: string): string {
  const what = language === "typescript" ? "node from 22.6" : `"${program}"`;
  return `"${language}" cannot run here: the image ${image} has no ${what}; use an image that has it`;
}
