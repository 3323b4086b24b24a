import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { BackendUnavailableError, InvalidInputError } from "@fenced/core";
import { checkOptions, optionsSchema, type OptionSchemas } from "@fenced/core/options";
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
  const root = path.resolve(directory);
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
  readonly packages?: readonly string[];
  /** The Python to create it from: a name on `PATH` or a path. Default: `python3`, else `python`. */
  readonly python?: string;
}

const createVirtualEnvOptions: z.ZodType<CreateVirtualEnvOptions> = optionsSchema({
  packages: z.array(z.string()).exactOptional(),
  python: z.string().min(1).exactOptional(),
} satisfies OptionSchemas<CreateVirtualEnvOptions>);

/**
 * Creates a virtual environment for the option `virtualEnv`, with Python's `venv`, or with `uv` if Python has no
 * working `venv`. Keeps an existing environment and installs the packages into it.
 *
 * @param directory - where to create it; relative to this process's working directory.
 * @returns its absolute path.
 * @throws BackendUnavailableError if there is no Python, or the packages cannot be installed.
 * @throws InvalidInputError if an option is unknown or wrong.
 *
 * @example
 * const virtualEnv = await createVirtualEnv(".venv", { packages: ["pandas>=2"] });
 * await using executor = new LocalCommandLineCodeExecutor({ virtualEnv });
 */
export async function createVirtualEnv(directory: string, options: CreateVirtualEnvOptions = {}): Promise<string> {
  const { packages, python: given } = checkOptions(createVirtualEnvOptions, options, "createVirtualEnv");
  const root = path.resolve(directory);
  const searchPath = process.env["PATH"] ?? "";
  const uv = findProgram("uv", searchPath);
  if (!existsSync(path.join(root, "pyvenv.cfg"))) await makeEnvironment(root, given, searchPath, uv);
  const { python } = findVirtualEnv(root);
  await installPackages(packages ?? [], python, uv);
  return root;
}

async function installPackages(packages: readonly string[], python: string, uv: string | undefined): Promise<void> {
  if (packages.length === 0) return;
  const remedy = "Correct the requirement, or check that the package index can be reached.";
  const pip = await run(python, ["-m", "pip", "--version"]).then(
    () => true,
    () => false,
  );
  if (pip) {
    await orUnavailable(run(python, ["-m", "pip", "install", ...packages]), "pip failed", remedy);
  } else if (uv !== undefined) {
    await orUnavailable(run(uv, ["pip", "install", "--python", python, ...packages]), "uv failed", remedy);
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
  const withVenv = python === undefined ? Promise.reject(new Error("no Python")) : run(python, ["-m", "venv", root]);
  const made = uv === undefined ? withVenv : withVenv.catch(async () => run(uv, uvWords(root, given)));
  try {
    await orUnavailable(made, `The virtual environment could not be created in ${root}`, remedy);
  } catch (error) {
    // Otherwise, the next attempt would mistake the incomplete environment for an existing one.
    await rm(path.join(root, "pyvenv.cfg"), { force: true });
    throw error;
  }
}

function uvWords(root: string, python: string | undefined): string[] {
  return ["venv", "--allow-existing", ...(python === undefined ? [] : ["--python", python]), root];
}

async function run(program: string, words: readonly string[]): Promise<void> {
  await promisify(execFile)(program, words, { windowsHide: true, maxBuffer: 16_777_216 });
}

async function orUnavailable(done: Promise<void>, problem: string, remedy: string): Promise<void> {
  await done.catch((cause: unknown) => {
    const stderr: unknown = typeof cause === "object" && cause !== null ? Reflect.get(cause, "stderr") : undefined;
    const reason = typeof stderr === "string" && stderr.trim() !== "" ? stderr.trim().slice(-2000) : String(cause);
    throw new BackendUnavailableError(`${problem}: ${reason}`, { remedy, cause });
  });
}
