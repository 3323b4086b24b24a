import type { LanguageCommand } from "./language-command.ts";

/** What is there where blocks will run: a container, another host. */
export interface PlaceInventory {
  /** The programs that were looked for and are there, with their places. */
  readonly programs: ReadonlyMap<string, string>;
  /** Node's answer to `--version`, if it was asked. */
  readonly nodeVersion?: string;
}

/** Which languages a place can run, and why not the others. */
export interface PlaceLanguages {
  readonly found: ReadonlyMap<string, LanguageCommand>;
  /** Language to a sentence that says what is missing and what to do. */
  readonly missing: ReadonlyMap<string, string>;
}

/** The programs that have to be looked for to run the languages of `table`. */
export function programsOf(table: Readonly<Record<string, LanguageCommand>>): string[] {
  return [...new Set([...Object.values(table).map(({ command }) => command[0] ?? ""), "python"])];
}

/**
 * Finds the languages of `table` in a place that is not this host.
 *
 * @param given - languages whose command the user gave; it is taken as it is.
 * @param place - names it and what to do about a missing program: `the image x`, `use an image that has it`.
 */
export function findPlaceLanguages(
  table: Readonly<Record<string, LanguageCommand>>,
  given: ReadonlySet<string>,
  inventory: PlaceInventory,
  place: { readonly name: string; readonly remedy: string },
): PlaceLanguages {
  const found = new Map<string, LanguageCommand>();
  const missing = new Map<string, string>();
  for (const [language, { extension, command }] of Object.entries(table)) {
    const own = given.has(language);
    const name = command[0] ?? "";
    const program = findProgram(language, name, inventory, own);
    const words = own ? command.slice(1) : nodeWords(language, command.slice(1), inventory.nodeVersion);
    if (program !== undefined && words !== undefined) found.set(language, { extension, command: [program, ...words] });
    else {
      const what = language === "typescript" && !own ? "node from 22.6" : `"${name}"`;
      missing.set(language, `"${language}" cannot run here: ${place.name} has no ${what}; ${place.remedy}`);
    }
  }
  return { found, missing };
}

function findProgram(language: string, name: string, { programs }: PlaceInventory, own: boolean): string | undefined {
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
