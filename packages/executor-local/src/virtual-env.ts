import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { lstat, mkdir, readdir } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { BackendUnavailableError, InvalidInputError } from "@fenced/core";
import { checkOptions, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import { makeDirectories } from "@fenced/core/runtime";
import { absolutePath, errorCode, readOwnFile, removeOwnFile, removeTree, writeOwnFile } from "@fenced/executor-kit";
import { z } from "zod";
import { findProgram } from "./languages/find-languages.ts";

/** The programs of a virtual environment. */
export interface VirtualEnv {
  readonly directory: string;
  /** The directory that goes first on `PATH`. */
  readonly bin: string;
  readonly python: string;
}

/**
 * Finds a virtual environment made by `python -m venv` or `uv venv`.
 *
 * @throws InvalidInputError if there is none at `directory`.
 */
export function findVirtualEnv(directory: string): VirtualEnv {
  const root = absolutePath(directory, "virtualEnv");
  const bin = path.join(root, process.platform === "win32" ? "Scripts" : "bin");
  const python = path.join(bin, process.platform === "win32" ? "python.exe" : "python");
  if (existsSync(path.join(root, "pyvenv.cfg")) && existsSync(python)) return { directory: root, bin, python };
  throw new InvalidInputError(`There is no virtual environment in ${root}`, {
    remedy: "Create one with createVirtualEnv(path), `python3 -m venv` or `uv venv`.",
  });
}

/**
 * The variables of programs that use a virtual environment, which takes precedence even over a `PATH` from the user.
 */
export function inVirtualEnv(
  env: Readonly<Record<string, string>>,
  { bin, directory }: VirtualEnv,
): Readonly<Record<string, string>> {
  const searchPath = [bin, ...(env["PATH"] === undefined ? [] : [env["PATH"]])];
  return { ...env, VIRTUAL_ENV: directory, PATH: searchPath.join(path.delimiter) };
}

/** Options of `createVirtualEnv`. */
export interface CreateVirtualEnvOptions {
  /** Packages to install into it, in pip's syntax: `"pandas>=2"`. Default: none. */
  readonly packages?: readonly string[] | undefined;
  /** The Python to create it from: a name on `PATH` or a path. Default: `python3`, else `python`. */
  readonly python?: string | undefined;
  /**
   * Install missing packages into an environment that exists already. This runs its Python in this process's name,
   * outside of any sandbox, so set it only if no code that you do not trust could ever write there: an environment in a
   * `workDir` is not such a one. Default: false.
   */
  readonly trustExisting?: boolean | undefined;
}

const createVirtualEnvOptions: z.ZodType<CreateVirtualEnvOptions> = optionsSchema({
  packages: z.array(z.string()).exactOptional(),
  python: z.string().min(1).exactOptional(),
  trustExisting: z.boolean().exactOptional(),
} satisfies OptionSchemas<CreateVirtualEnvOptions>);

/** The file in an environment that lists the packages that `createVirtualEnv` has installed there. */
const packageList = "fenced-packages.json";

/**
 * Creates a virtual environment for the option `virtualEnv`, with Python's `venv`, or with `uv` if Python has no
 * working `venv`. Keeps an existing environment, in which nothing is run: code of an earlier session may have written
 * to it. No session that can write to the directory may be running meanwhile.
 *
 * @param directory - where to create it; relative to this process's working directory.
 * @returns its absolute path.
 * @throws BackendUnavailableError if there is no Python, or the packages cannot be installed.
 * @throws InvalidInputError if an option is unknown or wrong, or the directory contains something else, or an
 * environment without these packages.
 *
 * @example
 * const virtualEnv = await createVirtualEnv(".venv", { packages: ["pandas>=2"] });
 * await using executor = new LocalCommandLineCodeExecutor({ virtualEnv });
 */
export async function createVirtualEnv(directory: string, options: CreateVirtualEnvOptions = {}): Promise<string> {
  const {
    packages = [],
    python: given,
    trustExisting = false,
  } = checkOptions(createVirtualEnvOptions, options, "createVirtualEnv");
  const root = absolutePath(directory, "directory");
  const searchPath = process.env["PATH"] ?? "";
  const uv = findProgram("uv", searchPath);
  if (existsSync(path.join(root, "pyvenv.cfg"))) {
    const { python } = findVirtualEnv(root);
    const listed = await listedPackages(root);
    const missing = packages.filter((each) => !listed.includes(each));
    if (missing.length === 0) return root;
    if (!trustExisting) throw untrustedEnvironment(root, missing);
    await installPackages(missing, python, uv);
    await listPackages(root, [...listed, ...missing]);
    return root;
  }
  await makeEmpty(root);
  try {
    await makeEnvironment(root, given, searchPath, uv);
    await installPackages(packages, findVirtualEnv(root).python, uv);
    await listPackages(root, packages);
  } catch (error) {
    // Otherwise, the next attempt would mistake the incomplete environment for an existing one.
    await removeTree(root);
    throw error;
  }
  return root;
}

function untrustedEnvironment(root: string, missing: readonly string[]): InvalidInputError {
  const packages = missing.map((each) => JSON.stringify(each)).join(", ");
  return new InvalidInputError(
    `The virtual environment in ${root} exists, and createVirtualEnv did not install ${packages} there`,
    {
      remedy:
        "Remove it to have it created anew, or name another directory. If no untrusted code could ever write to it, set `trustExisting: true`, which runs its Python outside of any sandbox.",
    },
  );
}

/** Creates the directory, or accepts an empty one: the new environment's Python would run what is there. */
async function makeEmpty(root: string): Promise<void> {
  await makeDirectories(path.dirname(root));
  try {
    await mkdir(root);
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw error;
    const isEmpty = (await lstat(root)).isDirectory() && (await readdir(root)).length === 0;
    if (isEmpty) return;
    throw new InvalidInputError(`${root} exists and is not a virtual environment`, {
      remedy: "Name a new or empty directory, or remove what is there.",
    });
  }
}

/** The packages that are listed in an environment; code may have changed the list, but nothing more than that. */
async function listedPackages(root: string): Promise<readonly string[]> {
  try {
    const listed: unknown = JSON.parse(await readOwnFile(path.join(root, packageList)));
    return z.array(z.string()).parse(listed);
  } catch {
    return [];
  }
}

async function listPackages(root: string, packages: readonly string[]): Promise<void> {
  const place = path.join(root, packageList);
  await removeOwnFile(place);
  writeOwnFile(place, `${JSON.stringify(packages)}\n`);
}

async function installPackages(packages: readonly string[], python: string, uv: string | undefined): Promise<void> {
  if (packages.length === 0) return;
  const remedy = "Correct the requirement, or check that the package index can be reached.";
  const pip = await run(python, ["-I", "-m", "pip", "--version"]).then(
    () => true,
    () => false,
  );
  if (pip) {
    await orUnavailable(run(python, ["-I", "-m", "pip", "install", ...packages]), "pip failed", remedy);
  } else if (uv !== undefined) {
    await orUnavailable(
      runUv(uv, ["pip", "install", "--python", python, ...packages.map(fromHere)]),
      "uv failed",
      remedy,
    );
  } else {
    throw new BackendUnavailableError(`Neither pip nor uv can install packages for ${python}`, {
      remedy: "Install uv, or create the environment with `python3 -m venv`, which includes pip.",
    });
  }
}

async function makeEnvironment(
  root: string,
  given: string | undefined,
  searchPath: string,
  uv: string | undefined,
): Promise<void> {
  const python = given ?? findProgram("python3", searchPath) ?? findProgram("python", searchPath);
  const remedy = "Install Python 3 with its venv module (Debian: `apt install python3-venv`), or uv.";
  if (python === undefined && uv === undefined) {
    throw new BackendUnavailableError("No Python was found", { remedy });
  }
  const withVenv =
    python === undefined ? Promise.reject(new Error("no Python")) : run(python, ["-I", "-m", "venv", root]);
  const made = uv === undefined ? withVenv : withVenv.catch(async () => runUv(uv, uvWords(root, given)));
  await orUnavailable(made, `The virtual environment could not be created in ${root}`, remedy);
}

function uvWords(root: string, python: string | undefined): string[] {
  return ["venv", "--allow-existing", ...(python === undefined ? [] : ["--python", fromHere(python)]), root];
}

/** A relative path as an absolute one; leaves names and requirements as they are. */
function fromHere(word: string): string {
  return /^\.{1,2}(\/|$)/.test(word) ? path.resolve(word) : word;
}

/**
 * Runs uv where no code can have put a configuration: it reads `uv.toml`, `pyproject.toml` and `.python-version` in
 * its working directory and those above.
 */
async function runUv(uv: string, words: readonly string[]): Promise<void> {
  await run(uv, words, path.parse(uv).root);
}

/**
 * Python must be started with `-I`: with `-m` alone, it imports modules from this process's working directory, which
 * may be the blocks' own.
 */
async function run(program: string, words: readonly string[], cwd?: string): Promise<void> {
  const options = { windowsHide: true, maxBuffer: 16_777_216 };
  await promisify(execFile)(program, words, cwd === undefined ? options : { ...options, cwd });
}

async function orUnavailable(done: Promise<void>, problem: string, remedy: string): Promise<void> {
  await done.catch((cause: unknown) => {
    const stderr: unknown = typeof cause === "object" && cause !== null ? Reflect.get(cause, "stderr") : undefined;
    const reason = typeof stderr === "string" && stderr.trim() !== "" ? stderr.trim().slice(-2000) : String(cause);
    throw new BackendUnavailableError(`${problem}: ${reason}`, { remedy, cause });
  });
}
