import path from "node:path";
import { canonicalLanguage, type ExecutorCapabilities, InvalidInputError } from "@fenced/core";

/** How a command-line executor runs blocks of one language: the block goes into a file, the file to a program. */
export interface LanguageCommand {
  /** The file's ending, without the dot. */
  readonly extension: string;
  /** The program and its arguments; the file's path is added at the end. */
  readonly command: readonly string[];
}

/**
 * The languages that command-line executors run, by canonical name. A `.js` file leaves it to Node whether it is an
 * ES module or CommonJS, as models write both; the warning that Node prints about that is switched off.
 */
export const defaultLanguages: Readonly<Record<string, LanguageCommand>> = {
  python: { extension: "py", command: ["python3"] },
  bash: { extension: "sh", command: ["bash"] },
  sh: { extension: "sh", command: ["sh"] },
  pwsh: { extension: "ps1", command: ["pwsh", "-NoProfile", "-NonInteractive", "-File"] },
  javascript: { extension: "js", command: ["node", "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"] },
  typescript: { extension: "ts", command: ["node", "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"] },
};

/**
 * The default languages with a user's own over them.
 *
 * @throws InvalidInputError if an entry has no program, or an extension that is not a plain word.
 */
export function languageTable(
  own: Readonly<Record<string, LanguageCommand>> | undefined,
): Readonly<Record<string, LanguageCommand>> {
  const table: Record<string, LanguageCommand> = { ...defaultLanguages };
  for (const [name, entry] of Object.entries(own ?? {})) {
    if (!/^\w+$/.test(entry.extension) || (entry.command[0] ?? "") === "") {
      throw new InvalidInputError(`The entry for "${name}" in \`languages\` is not usable`, {
        remedy: 'Give it an extension without a dot and a command, e.g. { extension: "rb", command: ["ruby"] }.',
      });
    }
    table[canonicalLanguage(name)] = entry;
  }
  return table;
}

/** What an executor can do that starts a process of its own for each block, in these languages. */
export function commandLineCapabilities(
  names: Iterable<string>,
): Omit<ExecutorCapabilities, "isolation" | "hostFunctions"> {
  const languages = [...names];
  return {
    languages,
    stateful: false,
    displays: false,
    functions: languages.filter((language) => language === "python" || language === "javascript"),
    stdin: true,
  };
}

/** Languages in which programs can call functions of the host, where there is a way: those with modules, and shells by a command. */
export function hostFunctionLanguages(names: Iterable<string>): string[] {
  const languages = [...names];
  const runtimes = ["python", "javascript"].filter((language) => languages.includes(language));
  if (runtimes.length === 0) return [];
  return languages.filter(
    (language) => [...runtimes, "bash", "sh"].includes(language) || isTypeScript(language, runtimes),
  );
}

function isTypeScript(language: string, runtimes: readonly string[]): boolean {
  return language === "typescript" && runtimes.includes("javascript");
}

/** The text to write into a block's file. Shells take a carriage return for a part of the word before it. */
export function blockSource(language: string, code: string): string {
  return language === "bash" || language === "sh" ? code.replaceAll("\r\n", "\n") : code;
}

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

/**
 * Environment variables that every command-line block gets, under the user's own: Python writes UTF-8 and at once, so
 * that output keeps its order and is not lost when the block is killed; pip is quiet and never asks.
 */
export const blockEnvironment: Readonly<Record<string, string>> = {
  PYTHONUNBUFFERED: "1",
  PYTHONUTF8: "1",
  PIP_QUIET: "1",
  PIP_DISABLE_PIP_VERSION_CHECK: "1",
  PIP_NO_INPUT: "1",
};

/**
 * The value of `PYTHONPATH` with which Python finds an executor's own modules before what the user put there.
 *
 * @param own - the executor's directories.
 * @param given - the user's `PYTHONPATH`.
 * @param delimiter - what stands between directories where the code runs. Default: this host's.
 */
export function pythonPath(
  own: readonly string[],
  given: string | undefined,
  delimiter: string = path.delimiter,
): string {
  return [...own, ...(given === undefined || given === "" ? [] : [given])].join(delimiter);
}

/** What a program needs to run at all, and nothing that a user would call a secret. */
const passedOn: ReadonlySet<string> = new Set([
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "LANG",
  "LANGUAGE",
  "TZ",
  "TMPDIR",
  "TEMP",
  "TMP",
  "SYSTEMROOT",
  "SYSTEMDRIVE",
  "WINDIR",
  "COMSPEC",
  "PATHEXT",
  "USERPROFILE",
  "APPDATA",
  "LOCALAPPDATA",
  "PROGRAMDATA",
  "PROGRAMFILES",
  "PROGRAMFILES(X86)",
  "NUMBER_OF_PROCESSORS",
  "PROCESSOR_ARCHITECTURE",
]);

/**
 * The part of this process's environment that blocks may see: what programs need to run, and `LC_*`.
 *
 * @param inherit - names of further variables to pass on.
 */
export function hostEnvironment(inherit: readonly string[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    const upper = name.toUpperCase();
    if (value === undefined) continue;
    if (!passedOn.has(upper) && !upper.startsWith("LC_") && !inherit.includes(name)) continue;
    // Windows takes `Path` and `PATH` for one, and would pass on only one of them.
    env[process.platform === "win32" ? upper : name] = value;
  }
  return env;
}
