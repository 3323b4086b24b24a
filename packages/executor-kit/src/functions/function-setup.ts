import { randomUUID } from "node:crypto";
import { FunctionSetupError, type FunctionWithRequirements } from "@fenced/core";
import { renderJavaScriptModule } from "./javascript-module.ts";
import { javaScriptSetupProgram } from "./javascript-setup-program.ts";
import { renderPythonModule } from "./python-module.ts";
import { pythonSetupProgram } from "./python-setup-program.ts";

/** Where a session keeps its function modules, as the code that runs in it names the places. */
export interface FunctionPlaces {
  /** A directory in which Python blocks find modules (through `PYTHONPATH`, for example). */
  readonly python?: string;
  /** Where missing Python packages are installed, also on Python's path. Default: into the Python environment itself. */
  readonly pythonPackages?: string;
  /** A directory in whose `node_modules` JavaScript blocks find packages. */
  readonly javascript?: string;
  /** A name of the executor, unique in the world; what it set up before under this name is written over. */
  readonly owner: string;
}

/** What a set-up program needs to know; it travels inside the program as JSON. */
export interface SetupPlan {
  /** The functions' module name. */
  readonly module: string;
  /** The module's source. */
  readonly source: string;
  /** Packages that must be there, as the language's installer takes them. */
  readonly packages: readonly string[];
  /** Where the module goes; see `FunctionPlaces`. */
  readonly directory: string;
  /** Where missing packages go. */
  readonly packagesDirectory?: string;
  /** Tells this executor's own earlier set-up, which is written over, from somebody else's files, which are not. */
  readonly owner: string;
  /** Marks the one line of output that is the program's report. */
  readonly nonce: string;
}

/** A program that sets the functions of one language up when it is run as a block. */
export interface SetupProgram {
  readonly language: string;
  readonly code: string;
  /**
   * Looks at what the program put out.
   *
   * @throws FunctionSetupError with the reason, if it failed.
   */
  readonly check: (output: { readonly stdout: string; readonly output: string }) => void;
}

/** One program for each language in which there are functions. */
export function setupPrograms(
  functions: readonly FunctionWithRequirements[],
  moduleName: string,
  places: FunctionPlaces,
): SetupProgram[] {
  const python = functions.filter((each) => each.language === "python");
  const javascript = functions.filter((each) => each.language === "javascript");
  const programs: SetupProgram[] = [];
  if (python.length > 0) programs.push(pythonSetup(python, moduleName, places));
  if (javascript.length > 0) programs.push(javaScriptSetup(javascript, moduleName, places));
  return programs;
}

function pythonSetup(
  functions: readonly FunctionWithRequirements[],
  module: string,
  places: FunctionPlaces,
): SetupProgram {
  const plan: SetupPlan = {
    module,
    source: renderPythonModule(functions),
    packages: unique(functions.flatMap((each) => each.requirements.pythonPackages ?? [])),
    directory: placeFor("python", places.python),
    ...(places.pythonPackages === undefined ? {} : { packagesDirectory: places.pythonPackages }),
    owner: places.owner,
    nonce: randomUUID(),
  };
  return { language: "python", code: pythonSetupProgram(plan), check: (output) => checkReport(plan, output) };
}

function javaScriptSetup(
  functions: readonly FunctionWithRequirements[],
  module: string,
  places: FunctionPlaces,
): SetupProgram {
  const plan: SetupPlan = {
    module,
    source: renderJavaScriptModule(functions),
    packages: unique(functions.flatMap((each) => each.requirements.npmPackages ?? [])),
    directory: placeFor("javascript", places.javascript),
    owner: places.owner,
    nonce: randomUUID(),
  };
  return { language: "javascript", code: javaScriptSetupProgram(plan), check: (output) => checkReport(plan, output) };
}

function placeFor(language: string, place: string | undefined): string {
  if (place !== undefined) return place;
  throw new FunctionSetupError(`This executor cannot offer ${language} functions`, {
    remedy: "Leave them out, or use an executor whose `capabilities.functions` names the language.",
  });
}

function checkReport(plan: SetupPlan, { stdout, output }: { stdout: string; output: string }): void {
  // Behind what a package that is imported may have put out without an end of line.
  const line = stdout.split("\n").find((each) => each.includes(plan.nonce));
  if (line === undefined) {
    throw new FunctionSetupError(`Setting up the functions ended without a report: ${tail(output)}`, {
      remedy: "Look at the output; the session's interpreter may be broken or its memory too small.",
    });
  }
  const report: unknown = JSON.parse(line.slice(line.indexOf(plan.nonce) + plan.nonce.length));
  const field = (name: string): string => {
    const value: unknown = typeof report === "object" && report !== null ? Reflect.get(report, name) : undefined;
    return typeof value === "string" ? value : "";
  };
  const reason = tail(field("reason"));
  if (field("failed") === "packages") {
    throw new FunctionSetupError(
      `The packages that the functions need could not be installed (${field("packages")}): ${reason}`,
      {
        remedy: "Correct the requirement, or install the packages where the code runs.",
      },
    );
  }
  if (field("failed") === "module") {
    throw new FunctionSetupError(`The functions do not load as module "${plan.module}": ${reason}`, {
      remedy: "Correct the function, its globalImports or its packages; each function must be self-contained.",
    });
  }
  if (field("failed") === "name") {
    throw new FunctionSetupError(`The module name "${plan.module}" is taken: ${reason}`, {
      remedy: "Choose another `functionsModule`.",
    });
  }
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}

function tail(text: string): string {
  const trimmed = text.trim();
  return trimmed.length > 2000 ? `...${trimmed.slice(-2000)}` : trimmed;
}
