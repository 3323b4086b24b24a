import path from "node:path";
import { canonicalLanguage, type ExecutorCapabilities, InvalidInputError } from "@fenced/core";
import { treeFileFeatures } from "../workspace/backend-files.ts";

/**
 * How a command-line executor runs blocks of one language: it writes the block to a file and passes the file to a
 * program.
 */
export interface LanguageCommand {
  /** The file's extension, without the dot. */
  readonly extension: string;
  /** The program and its arguments; the file's path is appended. */
  readonly command: readonly string[];
}

/**
 * The languages that command-line executors run, by canonical name. Node decides whether a `.js` file is an ES module
 * or CommonJS, since models write both; its warning about that is turned off.
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
 * The default languages, overridden by the user's.
 *
 * @throws InvalidInputError if an entry has no program or contains a NUL character, or its extension is not a plain word.
 */
export function languageTable(
  own: Readonly<Record<string, LanguageCommand>> | undefined,
): Readonly<Record<string, LanguageCommand>> {
  const table: Record<string, LanguageCommand> = { ...defaultLanguages };
  for (const [name, entry] of Object.entries(own ?? {})) {
    const { extension, command } = entry;
    if (!/^\w+$/.test(extension) || (command[0] ?? "") === "" || command.some((word) => word.includes("\0"))) {
      throw new InvalidInputError(`The entry for "${name}" in \`languages\` is not usable`, {
        remedy:
          'Give it an extension without a dot, and a command without NUL characters, e.g. { extension: "rb", command: ["ruby"] }.',
      });
    }
    table[canonicalLanguage(name)] = entry;
  }
  return table;
}

/** The capabilities of an executor that starts a process for each block in these languages. */
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
    files: [...treeFileFeatures, "watch"],
  };
}

/**
 * Languages whose programs can call host functions if there is a channel: those with modules, and shells through a
 * command.
 */
export function hostFunctionLanguages(names: Iterable<string>): string[] {
  const languages = [...names];
  const runtimes = ["python", "javascript"].filter((language) => languages.includes(language));
  if (runtimes.length === 0) return [];
  const typescript = runtimes.includes("javascript") ? ["typescript"] : [];
  return languages.filter((language) => [...runtimes, ...typescript, "bash", "sh"].includes(language));
}

/**
 * The text for a block's file. For shells, CRLF becomes LF, since they would treat a carriage return as part of a word.
 */
export function blockSource(language: string, code: string): string {
  return language === "bash" || language === "sh" ? code.replaceAll("\r\n", "\n") : code;
}

/**
 * Whether a language's programs find nothing by where their file is. It then need not stand in the work directory, where
 * `grep -r` and `git add -A` of that very program would find it. Python and JavaScript import from the file's directory.
 */
export function runsFromAnywhere(language: string): boolean {
  return language === "bash" || language === "sh";
}

/** Options with which programs run code from their command line. */
const inlineOptions: Readonly<Record<string, string>> = { python: "-c", bash: "-c", sh: "-c", javascript: "-e" };
/** Linux allows 128 KiB for one argument. */
const longestInline = 100_000;

/**
 * The command that runs code without a file: if the disk is full, a block that makes room must still be able to run.
 *
 * @returns `undefined` for a language that cannot do that, or code that is too long.
 */
export function commandWithoutFile(
  language: string,
  command: readonly string[],
  code: string,
): readonly [string, ...string[]] | undefined {
  const option = inlineOptions[language];
  const [program, ...words] = command;
  const source = blockSource(language, code);
  if (option === undefined || program === undefined || Buffer.byteLength(source) > longestInline) return undefined;
  return source.includes("\0") ? undefined : [program, ...words, option, source];
}

/** What is installed where blocks will run: in a container, on another host. */
export interface PlaceInventory {
  /** The requested programs that were found, with their paths. */
  readonly programs: ReadonlyMap<string, string>;
  /** The output of `node --version`, if it was requested. */
  readonly nodeVersion?: string;
  /** The packages of the Python that blocks use, if they are known. */
  readonly packages?: readonly string[];
}

/** Which languages a place can run, and why it cannot run the others. */
export interface PlaceLanguages {
  readonly found: ReadonlyMap<string, LanguageCommand>;
  /** For each missing language, a sentence that says what is missing and what to do. */
  readonly missing: ReadonlyMap<string, string>;
  /** See `ExecutorCapabilities.packages`. */
  readonly packages?: readonly string[];
}

/** The programs needed to run the languages of `table`. */
export function programsOf(table: Readonly<Record<string, LanguageCommand>>): string[] {
  return [...new Set([...Object.values(table).map(({ command }) => command[0] ?? ""), "python"])];
}

/** Where programs were searched, for messages about those that were not found. */
export interface ProgramsPlace {
  readonly name: string;
  readonly remedy: string;
}

/**
 * Where programs are searched in a place made from an image: in the image's own directories, or in those of the caller's
 * `PATH`, which is often this host's by mistake.
 *
 * @param image - `the image python:3-slim`.
 * @param env - the executor's variables.
 */
export function programsPlace(image: string, env: Readonly<Record<string, string>> = {}): ProgramsPlace {
  const searched = env["PATH"];
  if (searched === undefined) return { name: image, remedy: "use an image that has it" };
  const shown = searched.length > 200 ? `${searched.slice(0, 200)}...` : searched;
  return {
    name: `the PATH in the option \`env\` (${shown})`,
    remedy: `leave it out to use that of ${image}: directories of this host do not exist there`,
  };
}

/**
 * Finds the languages of `table` in a place that is not this host.
 *
 * @param given - languages with a command from the user; these are used without a check.
 * @param place - the place's name, and what to do about a missing program: `the image x`, `use an image that has it`.
 */
export function findPlaceLanguages(
  table: Readonly<Record<string, LanguageCommand>>,
  given: ReadonlySet<string>,
  inventory: PlaceInventory,
  place: ProgramsPlace,
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
      const what = language === "typescript" && !own ? "Node 22.6 or later" : `"${name}"`;
      missing.set(language, `"${language}" cannot run here: ${place.name} has no ${what}; ${place.remedy}`);
    }
  }
  const { packages } = inventory;
  // A Python of the user's choice may have others.
  return { found, missing, ...(packages && !given.has("python") && { packages }) };
}

function findProgram(language: string, name: string, { programs }: PlaceInventory, own: boolean): string | undefined {
  return programs.get(name) ?? (language === "python" && !own ? programs.get("python") : undefined);
}

/** The arguments that this version of Node supports; `undefined` if it cannot run the language. */
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
 * Default environment variables of every command-line block, which the user's variables override: Python writes UTF-8
 * without buffering, so that output keeps its order and is not lost when the block is killed; pip is quiet and never
 * prompts.
 */
export const blockEnvironment: Readonly<Record<string, string>> = {
  PYTHONUNBUFFERED: "1",
  PYTHONUTF8: "1",
  PIP_QUIET: "1",
  PIP_DISABLE_PIP_VERSION_CHECK: "1",
  PIP_NO_INPUT: "1",
};

/**
 * The value of `PYTHONPATH` that puts an executor's own modules before the user's.
 *
 * @param own - the executor's directories.
 * @param given - the user's `PYTHONPATH`.
 * @param delimiter - separates directories where the code runs. Default: this host's.
 */
export function pythonPath(
  own: readonly string[],
  given: string | undefined,
  delimiter: string = path.delimiter,
): string {
  return [...own, ...(given === undefined || given === "" ? [] : [given])].join(delimiter);
}

/** Variables that programs need in order to run; none of them is secret. */
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
 * @param inherit - names of additional variables to pass on.
 */
export function hostEnvironment(inherit: readonly string[]): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    const upper = name.toUpperCase();
    if (value === undefined) continue;
    if (!passedOn.has(upper) && !upper.startsWith("LC_") && !inherit.includes(name)) continue;
    // Windows treats `Path` and `PATH` as the same variable, and would pass on only one of them.
    env[process.platform === "win32" ? upper : name] = value;
  }
  return env;
}
