import { execFile } from "node:child_process";
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { homeDirectory } from "@fenced/core/runtime";
import { hostEnvironment } from "@fenced/executor-kit";
import { findProgram } from "../languages/find-languages.ts";
import type { VirtualEnv } from "../virtual-env.ts";
import { isWithin } from "./shared-paths.ts";
import { isSystemPath } from "./system-directories.ts";

/** Which programs to look for, and where. */
export interface InstallationSearch {
  /** Names or absolute paths. */
  readonly programs: readonly string[];
  /** The blocks' `PATH`. */
  readonly searchPath: string;
  readonly virtualEnv: VirtualEnv | undefined;
  /**
   * Absolute paths, without symbolic links, of directories that code may have written to; nothing in them is trusted or
   * run.
   */
  readonly untrusted: readonly string[];
}

/** The host files that the programs need. */
export interface Installations {
  /** Absolute paths of files and directories to show to blocks in addition to the system's. */
  readonly places: readonly string[];
  /** Directories to put first on the blocks' `PATH`: those of the programs behind version managers' shims. */
  readonly directories: readonly string[];
  /** The part of `PATH` to which code cannot have written. */
  readonly trustedPath: string;
  /** Absolute path of the first `python3` in it, if code can have changed neither that nor its library. */
  readonly python: string | undefined;
}

/** Finds programs outside the system's directories, such as those of version managers, Conda and `/opt`. */
export async function findInstallations(search: InstallationSearch): Promise<Installations> {
  const { programs, virtualEnv } = search;
  const { isTrusted, searched, trustedPath, python } = trustedPrograms(search);
  const found = await Promise.all(
    programs.map(async (name) => {
      if (name.includes("/") && !path.isAbsolute(name)) return { places: [], directories: [] };
      const program = findProgram(name, trustedPath);
      return program === undefined || !startsTrusted(program, isTrusted)
        ? { places: [], directories: [] }
        : installationOf(name, program, { searched, trustedPath });
    }),
  );
  const environment =
    virtualEnv && isTrusted(virtualEnv.directory) ? await virtualEnvPlaces(virtualEnv, trustedPath) : [];
  const places = [...found.flatMap((each) => each.places), ...environment].flatMap((each) => [each, realPath(each)]);
  return {
    places: [...new Set(places)].filter((each) => !isSystemPath(each) && isTrusted(each)),
    directories: [...new Set(found.flatMap((each) => each.directories))],
    trustedPath,
    python,
  };
}

/** The interpreter that a trusted `python3` is, or leads to; `undefined` if it is not trusted. */
export async function interpreterBehind({
  python,
  isTrusted,
  trustedPath,
}: TrustedPrograms): Promise<string | undefined> {
  if (python === undefined || isSystemPath(realPath(python))) return python;
  const [found] = await askPython(python, trustedPath);
  return found !== undefined && startsTrusted(found, isTrusted) ? found : undefined;
}

/** What may run outside of a sandbox. */
export interface TrustedPrograms extends Pick<Installations, "trustedPath" | "python"> {
  readonly isTrusted: (place: string) => boolean;
  /** The directories of `trustedPath`. */
  readonly searched: readonly string[];
}

/** Finds the programs that code in a sandbox cannot have changed. */
export function trustedPrograms({
  searchPath,
  untrusted,
}: Pick<InstallationSearch, "searchPath" | "untrusted">): TrustedPrograms {
  const isTrusted = (place: string): boolean => !untrusted.some((each) => isWithin(realPath(place), each));
  const searched = searchPath.split(":").filter((each) => path.isAbsolute(each) && isTrusted(each));
  const trustedPath = searched.join(":");
  const python = findProgram("python3", trustedPath);
  const isOurs = python !== undefined && startsTrusted(python, isTrusted);
  return { isTrusted, searched, trustedPath, python: isOurs ? python : undefined };
}

/**
 * True if code can have changed neither a program nor, if it is the Python of a virtual environment, the installation
 * whose library it loads.
 */
function startsTrusted(program: string, isTrusted: (place: string) => boolean): boolean {
  return isTrusted(program) && [program, realPath(program)].every((each) => isTrusted(homeOf(each) ?? each));
}

/** Where a virtual environment's Python has its library; `undefined` for other programs. */
function homeOf(program: string): string | undefined {
  try {
    const settings = readFileSync(path.join(path.dirname(program), "../pyvenv.cfg"), "utf8");
    return /^home *= *(\/.*)$/m.exec(settings)?.[1]?.trim();
  } catch {
    return undefined;
  }
}

async function installationOf(
  name: string,
  program: string,
  { searched, trustedPath }: Pick<TrustedPrograms, "searched" | "trustedPath">,
): Promise<{ readonly places: string[]; readonly directories: string[] }> {
  const python = /^python3?$/.test(name);
  if (isSystemPath(realPath(program))) return { places: [], directories: [] };
  // Ask the program, because only a version manager's shim knows which program it runs.
  const answer = python ? askPython(program, trustedPath) : name === "node" ? askNode(program, trustedPath) : [];
  const [own = program, ...more] = await answer;
  const directory = path.dirname(own);
  return {
    places: [...placesOf(own), ...more],
    directories: searched.includes(directory) || isSystemPath(directory) ? [] : [directory],
  };
}

/**
 * A virtual environment and the installation that it was made from. Code of an earlier session may have changed the
 * environment, so nothing of it is run: only a Python of `trustedPath` is asked, and only if it is the same program.
 */
async function virtualEnvPlaces({ directory, python }: VirtualEnv, trustedPath: string): Promise<string[]> {
  const parts = virtualEnvParts(directory);
  const base = realPath(python);
  if (isSystemPath(base)) return parts;
  for (const name of [path.basename(base), "python3"]) {
    const program = findProgram(name, trustedPath);
    if (program === undefined || isWithin(program, directory)) continue;
    const [executable = program, ...more] = await askPython(program, trustedPath);
    if (realPath(executable) === base) return [...parts, ...more];
  }
  return parts;
}

/** Asks Python for its program and its directories. */
async function askPython(program: string, trustedPath: string): Promise<string[]> {
  const question =
    "import sys, sysconfig; print(sys.executable, sys.base_prefix, *map(sysconfig.get_path, ['stdlib', 'platstdlib']), sep='\\n')";
  const [executable, prefix, ...libraries] = await ask(program, ["-I", "-S", "-c", question], trustedPath);
  if (executable === undefined || prefix === undefined) return [];
  return [executable, ...partsOf(prefix, 1), ...libraries];
}

async function askNode(program: string, trustedPath: string): Promise<string[]> {
  if (realPath(program) === realPath(process.execPath)) return [program];
  return ask(program, ["-p", "process.execPath"], trustedPath);
}

/**
 * The absolute paths that a program prints, one per line.
 *
 * @param trustedPath - where it finds others: a version manager's shim is a script that runs some.
 */
async function ask(program: string, words: readonly string[], trustedPath: string): Promise<string[]> {
  try {
    const env = { ...hostEnvironment([]), PATH: trustedPath };
    const options = { cwd: "/", env, timeout: 20_000, maxBuffer: 65_536 };
    const { stdout } = await promisify(execFile)(program, words, options);
    return stdout.split("\n").filter((line) => path.isAbsolute(line));
  } catch {
    return [];
  }
}

/** A program, and the parts of the installation that it belongs to. */
function placesOf(program: string): string[] {
  return [program, realPath(program)].flatMap((each) => {
    const directory = path.dirname(each);
    return path.basename(directory) === "bin" ? [each, ...partsOf(path.dirname(directory), 2)] : [each];
  });
}

/** What installations consist of, besides notes; Java has its settings in `conf`, and Go its library in `src`. */
const installed = new Set(
  [
    ["bin", "sbin", "lib", "lib32", "lib64", "libexec", "share", "include", "man", "ssl", "opt", "Cellar"],
    ["conf", "jmods", "release", "pkg", "src"],
  ].flat(),
);
/** What marks the top directory of a project, which may contain keys, and whose programs may be in its `bin`. */
const project =
  /^(\.git|\.hg|\.svn|\.env.*|\.npmrc|\.vscode|\.idea|package\.json|deno\.jsonc?|pyproject\.toml|setup\.py|requirements.*\.txt|Pipfile|Cargo\.toml|go\.mod|Gemfile|composer\.json|pom\.xml|build\.gradle.*|Makefile|CMakeLists\.txt|Dockerfile|(docker-)?compose\.ya?ml)$/;

/**
 * The directories of an installation; empty if the prefix is something else.
 *
 * @param depth - minimum depth below a home directory.
 */
function partsOf(prefix: string, depth: number): string[] {
  if (!isInstallation(prefix, depth)) return [];
  const names = namesIn(prefix);
  if (names.includes("conda-meta")) return [prefix];
  if (names.includes("pyvenv.cfg")) return virtualEnvParts(prefix);
  if (names.some((each) => project.test(each))) return [];
  return names.filter((each) => installed.has(each)).map((each) => path.join(prefix, each));
}

/** A virtual environment may have been created in a project's own directory. */
function virtualEnvParts(directory: string): string[] {
  const parts = new Set(["pyvenv.cfg", "bin", "lib", "lib64", "include", "share", "etc"]);
  return namesIn(directory)
    .filter((each) => parts.has(each))
    .map((each) => path.join(directory, each));
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

/**
 * True if a directory contains an installation and little else. `~/.local`, `/opt` and home directories contain all
 * kinds of things.
 *
 * @param depth - minimum depth below a home directory.
 */
function isInstallation(prefix: string, depth: number): boolean {
  const home = realPath(homeDirectory());
  if (isWithin(home, prefix) || prefix.split("/").length < 3 || /^\/(home|Users)\/[^/]*$/.test(prefix)) return false;
  if (!isWithin(prefix, home)) return true;
  const below = path.relative(home, prefix);
  return below !== ".local" && below.split("/").length >= depth;
}

/** A path without symbolic links, or the path itself if that is unknown. */
export function realPath(place: string): string {
  try {
    return realpathSync(place);
  } catch {
    return place;
  }
}
