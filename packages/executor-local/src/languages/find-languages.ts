import { execFile } from "node:child_process";
// Always with `bigint`, as the lint rule requires.
// oxlint-disable-next-line no-restricted-imports
import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { findPackage } from "@fenced/core/runtime";
import type { LanguageCommand } from "@fenced/executor-kit";

/** A command whose program was found. */
interface FoundLanguage {
  readonly extension: string;
  /** The program's absolute path and its arguments. */
  readonly command: readonly [string, ...string[]];
}

/** The languages that can run, and why the others cannot. */
export interface FoundLanguages {
  readonly found: ReadonlyMap<string, FoundLanguage>;
  /** For each missing language, a sentence that says what is missing and what to do. */
  readonly missing: ReadonlyMap<string, string>;
}

/** Options of `findLanguages`. */
export interface LanguageSearch {
  /** The environment of the blocks, whose `PATH` is searched. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Languages with a command from the user; these are used without a check. */
  readonly given: ReadonlySet<string>;
  /** Wraps a command so that it runs where the blocks will run. Default: no wrapper. */
  readonly wrap?: (command: readonly [string, ...string[]]) => [string, ...string[]];
}

const remedies: Readonly<Record<string, string>> = {
  python: "install Python 3",
  pwsh: "install PowerShell 7",
  javascript: "install Node.js",
  typescript: "install Node.js 22.6 or later, or `npm install tsx` next to the executor",
};

/** Finds the programs of all languages in `table`. */
export async function findLanguages(
  table: Readonly<Record<string, LanguageCommand>>,
  search: LanguageSearch,
): Promise<FoundLanguages> {
  const found = new Map<string, FoundLanguage>();
  const missing = new Map<string, string>();
  const answers = await Promise.all(
    Object.entries(table).map(async ([language, { extension, command: wanted }]) => {
      return { language, extension, wanted, command: await findCommand(language, wanted, search) };
    }),
  );
  for (const { language, extension, wanted, command } of answers) {
    if (command) found.set(language, { extension, command });
    else missing.set(language, missingSentence(language, wanted));
  }
  return { found, missing };
}

async function findCommand(
  language: string,
  [name = "", ...words]: readonly string[],
  search: LanguageSearch,
): Promise<readonly [string, ...string[]] | undefined> {
  const searchPath = search.env["PATH"] ?? search.env["Path"] ?? "";
  const program = findProgram(name, searchPath);
  const own = search.given.has(language);
  if (language === "python" && !own) {
    return findPython(program ?? findProgram("python", searchPath), words, search);
  }
  if (program === undefined) return undefined;
  if (language === "typescript" && !own) return typeScriptCommand(program, words, search);
  return [program, ...words];
}

/**
 * Finds the interpreter behind the `python` on the path: a version manager's shim takes longer to start than Python
 * itself, and a stub that only offers to install Python does not answer.
 */
async function findPython(
  program: string | undefined,
  words: readonly string[],
  search: LanguageSearch,
): Promise<readonly [string, ...string[]] | undefined> {
  if (program === undefined) return undefined;
  const answer = await ask(program, ["-c", "import sys; print(sys.executable)"], search);
  return answer === undefined ? undefined : [answer === "" ? program : answer, ...words];
}

/** Node strips types by default since 22.18 and 23.6, and behind a flag since 22.6; older versions need `tsx`. */
async function typeScriptCommand(
  node: string,
  words: readonly string[],
  search: LanguageSearch,
): Promise<readonly [string, ...string[]] | undefined> {
  const version = node === process.execPath ? process.version : await ask(node, ["--version"], search);
  const [, major = 0, minor = 0] = (/^v(\d+)\.(\d+)/.exec(version ?? "") ?? []).map(Number);
  const quiet = "--disable-warning=ExperimentalWarning";
  if (major > 23 || (major === 23 && minor >= 6) || (major === 22 && minor >= 18)) return [node, ...words, quiet];
  if (major === 23 || (major === 22 && minor >= 6)) return [node, ...words, quiet, "--experimental-strip-types"];
  const tsx = findTsx(search.cwd);
  return tsx === undefined ? undefined : [node, ...words, "--import", pathToFileURL(tsx).href];
}

/** Resolves tsx from the work directory, this package or the surrounding program. */
function findTsx(cwd: string): string | undefined {
  for (const url of [pathToFileURL(path.join(cwd, "block.ts")).href, import.meta.url]) {
    try {
      return findPackage("tsx", { url, through: ["@fenced/executor-local"] });
    } catch {
      // Not resolvable from there.
    }
  }
  return undefined;
}

async function ask(
  program: string,
  words: readonly string[],
  { env, cwd, wrap = (command) => [...command] }: LanguageSearch,
): Promise<string | undefined> {
  const [file, ...rest] = wrap([program, ...words]);
  try {
    const { stdout } = await promisify(execFile)(file, rest, { env, cwd, timeout: 20_000, windowsHide: true });
    return stdout.trim();
  } catch {
    return undefined;
  }
}

function missingSentence(language: string, command: readonly string[]): string {
  const remedy = remedies[language] ?? `install "${command[0]}"`;
  return `"${language}" cannot run here: "${command[0]}" was not found or cannot run it; ${remedy}, then stop() and start() the executor`;
}

/**
 * Finds a program the way the system would.
 *
 * @param searchPath - directories, in the form of the `PATH` variable.
 * @returns its absolute path, or `undefined` if it does not exist or is not executable.
 */
export function findProgram(name: string, searchPath: string): string | undefined {
  const endings =
    process.platform === "win32" ? ["", ...(process.env["PATHEXT"] ?? ".EXE;.CMD;.BAT").split(";")] : [""];
  const directories =
    path.basename(name) === name ? searchPath.split(path.delimiter).filter((each) => each !== "") : [""];
  for (const directory of directories) {
    for (const ending of endings) {
      const candidate = path.resolve(directory, name + ending);
      if (isProgram(candidate)) return candidate;
    }
  }
  return undefined;
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file, { bigint: true }).isFile();
  } catch {
    return false;
  }
}
