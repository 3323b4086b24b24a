import { execFile } from "node:child_process";
import { realpathSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
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
}

/** Finds programs outside the system's directories, such as those of version managers, Conda and `/opt`. */
export async function findInstallations(search: InstallationSearch): Promise<Installations> {
  const { programs, searchPath, virtualEnv, untrusted } = search;
  const isTrusted = (place: string): boolean => !untrusted.some((each) => isWithin(real(place), each));
  const searched = searchPath.split(":").filter((each) => path.isAbsolute(each) && isTrusted(each));
  const trustedPath = searched.join(":");
  const found = await Promise.all(
    programs.map(async (name) => {
      if (name.includes("/") && !path.isAbsolute(name)) return { places: [], directories: [] };
      const program = findProgram(name, trustedPath);
      return program === undefined || !isTrusted(program)
        ? { places: [], directories: [] }
        : installationOf(name, program, searched);
    }),
  );
  const environment = virtualEnv && isTrusted(virtualEnv.directory) ? await virtualEnvPlaces(virtualEnv) : [];
  const places = [...found.flatMap((each) => each.places), ...environment].flatMap((each) => [each, real(each)]);
  return {
    places: [...new Set(places)].filter((each) => !isSystemPath(each) && isTrusted(each)),
    directories: [...new Set(found.flatMap((each) => each.directories))],
    trustedPath,
  };
}

async function installationOf(
  name: string,
  program: string,
  searched: readonly string[],
): Promise<{ readonly places: string[]; readonly directories: string[] }> {
  const python = /^python3?$/.test(name);
  if (isSystemPath(real(program))) return { places: [], directories: [] };
  // Ask the program, because only a version manager's shim knows which program it runs.
  const [own = program, ...more] = python ? await askPython(program) : name === "node" ? await askNode(program) : [];
  const directory = path.dirname(own);
  return {
    places: [...placesOf(own), ...more],
    directories: searched.includes(directory) || isSystemPath(directory) ? [] : [directory],
  };
}

async function virtualEnvPlaces({ directory, python }: VirtualEnv): Promise<string[]> {
  return [directory, ...(await askPython(python)).slice(1)];
}

/** Asks Python for its program and its directories. */
async function askPython(program: string): Promise<string[]> {
  const question =
    "import sys, sysconfig; print(sys.executable, sys.base_prefix, *map(sysconfig.get_path, ['stdlib', 'platstdlib']), sep='\\n')";
  const [executable, prefix, ...libraries] = await ask(program, ["-I", "-c", question]);
  if (executable === undefined || prefix === undefined) return [];
  return [executable, ...(isInstallation(prefix, 1) ? [prefix] : []), ...libraries];
}

async function askNode(program: string): Promise<string[]> {
  return real(program) === real(process.execPath) ? [program] : ask(program, ["-p", "process.execPath"]);
}

/** The absolute paths that a program prints, one per line. */
async function ask(program: string, words: readonly string[]): Promise<string[]> {
  try {
    const options = { cwd: "/", env: hostEnvironment([]), timeout: 20_000, maxBuffer: 65_536 };
    const { stdout } = await promisify(execFile)(program, words, options);
    return stdout.split("\n").filter((line) => path.isAbsolute(line));
  } catch {
    return [];
  }
}

/** The directory that contains a program's whole installation, or else only the program. */
function placesOf(program: string): string[] {
  return [program, real(program)].flatMap((each) => {
    const directory = path.dirname(each);
    const prefix = path.dirname(directory);
    return path.basename(directory) === "bin" && isInstallation(prefix, 2) ? [each, prefix] : [each];
  });
}

/**
 * True if a directory contains an installation and little else. `~/.local`, `/opt` and home directories contain all
 * kinds of things.
 *
 * @param depth - minimum depth below a home directory.
 */
function isInstallation(prefix: string, depth: number): boolean {
  const home = real(homedir());
  if (isWithin(home, prefix) || prefix.split("/").length < 3 || /^\/(home|Users)\/[^/]*$/.test(prefix)) return false;
  if (!isWithin(prefix, home)) return true;
  const below = path.relative(home, prefix);
  return below !== ".local" && below.split("/").length >= depth;
}

function real(place: string): string {
  try {
    return realpathSync(place);
  } catch {
    return place;
  }
}
