import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { FunctionSetupError, type FunctionWithRequirements, type HostFunction, parseJson } from "@fenced/core";
import {
  commandProgram,
  javaScriptHostModule,
  javaScriptRuntime,
  pythonHostModule,
  pythonRuntime,
} from "../host-calls/stubs/host-modules.ts";
import { type BlockPlace, runBlock } from "../run/run-block.ts";
import { RunEnd } from "../run/run-end.ts";
import { functionsPackageMarker, renderJavaScriptModule, renderPythonModule } from "./function-modules.ts";

const pythonProgram: string = readFileSync(new URL("./set-up.py", import.meta.url), "utf8");
const javaScriptProgram: string = readFileSync(new URL("./set-up.mjs", import.meta.url), "utf8");

/** Setting up functions may install packages, which can take long but must end eventually. */
const timeoutMs = 600_000;

/** Where a session stores its function modules, as paths that its code sees. */
export interface FunctionPlaces {
  /** A directory in which Python blocks find modules (through `PYTHONPATH`, for example). */
  readonly python?: string;
  /** Where missing Python packages are installed; also on Python's path. Default: the Python environment itself. */
  readonly pythonPackages?: string;
  /** A directory in whose `node_modules` JavaScript blocks find packages. */
  readonly javascript?: string;
  /** A directory on the blocks' `PATH`, for the shell command that calls host functions. */
  readonly commands?: string;
  /** The executor's name, globally unique; an earlier set-up under this name is overwritten. */
  readonly owner: string;
}

/** What a set-up program needs to know; embedded in the program as JSON. */
interface SetupPlan {
  /** The name of the functions' module. */
  readonly module: string;
  /** The module's source. */
  readonly source: string;
  /** Packages that must be installed, in the syntax of the language's installer. */
  readonly packages: readonly string[];
  /** Where the module is written; see `FunctionPlaces`. */
  readonly directory: string;
  /** Where missing packages are installed. */
  readonly packagesDirectory?: string;
  /** Distinguishes this executor's own earlier set-up, which is overwritten, from other files, which are not. */
  readonly owner: string;
  /** Additional files of the module or package, by name. */
  readonly files: Readonly<Record<string, string>>;
  /** Overwrite this owner's files without removing them first, because blocks may be using them. */
  readonly update: boolean;
  /** The shell command that calls host functions, if this language runs it. */
  readonly command?: ShellCommand;
  /** The file in a functions package that names its owner. */
  readonly marker: string;
  /** Marks the output line that contains the program's report. */
  readonly nonce: string;
}

/** A shell command with the placeholders `@INTERPRETER@` and `@RUNTIME@`. */
interface ShellCommand {
  readonly directory: string;
  readonly name: string;
  readonly text: string;
  /** The file next to it with the program that it runs. */
  readonly runtime: { readonly name: string; readonly text: string };
}

/** The functions to set up. */
export interface FunctionChoice {
  readonly functions: readonly FunctionWithRequirements[];
  readonly hostFunctions: readonly HostFunction[];
  /** All host functions of the session so far, because JavaScript blocks of all calls share one package. */
  readonly everyHostFunction: readonly HostFunction[];
  readonly moduleName: string;
  /** A directory below `python` for a separate module; `undefined` for the module that all calls share. */
  readonly variant: string | undefined;
  /** Languages that can run here. */
  readonly languages: readonly string[];
}

/** A program that sets up one language's functions when run as a block. */
interface SetupProgram {
  readonly language: string;
  readonly code: string;
  /**
   * Checks the program's output.
   *
   * @throws FunctionSetupError with the reason if it failed.
   */
  readonly check: (output: { readonly stdout: string; readonly output: string }) => void;
}

/** One program for each language with functions. Host functions are included for every language that can run. */
export function setupPrograms(choice: FunctionChoice, places: FunctionPlaces): SetupProgram[] {
  const { functions, hostFunctions, languages } = choice;
  const needed = (language: string): boolean =>
    functions.some((each) => each.language === language) || (hostFunctions.length > 0 && languages.includes(language));
  const programs: SetupProgram[] = [];
  if (needed("python")) programs.push(pythonSetup(choice, places));
  if (needed("javascript")) programs.push(javaScriptSetup(choice, places));
  return programs;
}

function pythonSetup(choice: FunctionChoice, places: FunctionPlaces): SetupProgram {
  const { moduleName, hostFunctions, variant } = choice;
  const functions = choice.functions.filter((each) => each.language === "python");
  const host = pythonHostModule(hostFunctions, moduleName);
  const directory = placeFor("python", places.python);
  const plan: SetupPlan = {
    module: moduleName,
    source: `${renderPythonModule(functions)}${host.lines}`,
    files: host.files,
    packages: unique(functions.flatMap((each) => each.requirements.pythonPackages ?? [])),
    directory: variant === undefined ? directory : `${directory}/${variant}`,
    update: variant !== undefined,
    ...commandFor("python", choice, places),
    ...(places.pythonPackages === undefined ? {} : { packagesDirectory: places.pythonPackages }),
    ...ownerOf(places),
  };
  // A JSON string literal is also a Python one.
  const call = `_fenced_set_up(__import__("json").loads(${JSON.stringify(JSON.stringify(plan))}))\ndel _fenced_set_up\n`;
  return { language: "python", code: `${pythonProgram}\n\n${call}`, check: (output) => checkReport(plan, output) };
}

function javaScriptSetup(choice: FunctionChoice, places: FunctionPlaces): SetupProgram {
  const { moduleName, everyHostFunction, variant } = choice;
  const functions = choice.functions.filter((each) => each.language === "javascript");
  const host = javaScriptHostModule(everyHostFunction);
  const plan: SetupPlan = {
    module: moduleName,
    source: `${functions.length > 0 ? renderJavaScriptModule(functions) : ""}${host.lines}`,
    files: host.files,
    packages: unique(functions.flatMap((each) => each.requirements.npmPackages ?? [])),
    directory: placeFor("javascript", places.javascript),
    update: variant !== undefined,
    ...commandFor("javascript", choice, places),
    ...ownerOf(places),
  };
  // Defines no names in a session that keeps variables.
  const code = `(() => {\n${javaScriptProgram}\nreturn setUp(${JSON.stringify(plan)}).then(console.log);\n})();\n`;
  return { language: "javascript", code, check: (output) => checkReport(plan, output) };
}

/** The shell command, in Python if available, because it starts faster. */
function commandFor(
  language: "python" | "javascript",
  { hostFunctions, languages, moduleName }: FunctionChoice,
  { commands }: FunctionPlaces,
): { readonly command?: ShellCommand } {
  const runs = languages.includes("python") ? "python" : "javascript";
  if (commands === undefined || hostFunctions.length === 0 || runs !== language) return {};
  const runtime =
    language === "python"
      ? { name: "_fenced_host_calls.py", text: pythonRuntime }
      : { name: "_fenced_host_calls.mjs", text: javaScriptRuntime };
  return { command: { directory: commands, name: moduleName, text: commandProgram, runtime } };
}

function ownerOf({ owner }: FunctionPlaces): Pick<SetupPlan, "owner" | "marker" | "nonce"> {
  return { owner, marker: functionsPackageMarker, nonce: randomUUID() };
}

function placeFor(language: string, place: string | undefined): string {
  if (place !== undefined) return place;
  throw new FunctionSetupError(`This executor cannot offer ${language} functions`, {
    remedy: "Leave them out, or use an executor whose `capabilities.functions` names the language.",
  });
}

function checkReport(plan: SetupPlan, { stdout, output }: { stdout: string; output: string }): void {
  // An imported package may have printed something on the same line before it.
  const line = stdout.split("\n").find((each) => each.includes(plan.nonce));
  if (line === undefined) {
    throw new FunctionSetupError(`The set-up of the functions ended without a report: ${tail(output)}`, {
      remedy: "Check the output; the session's interpreter may be broken, or out of memory.",
    });
  }
  const report = parseReport(line.slice(line.indexOf(plan.nonce) + plan.nonce.length), output);
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

/** Packages that the set-up imports may write there, too. */
function parseReport(text: string, output: string): unknown {
  try {
    return parseJson(text, { maxValues: 100 });
  } catch (cause) {
    throw new FunctionSetupError(`The set-up of the functions ended with a broken report: ${tail(output)}`, {
      remedy: "Check the output: a package that the functions import may have written to it.",
      cause,
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

/** Where and how a set-up program runs. */
export interface SetupConditions {
  readonly place: BlockPlace;
  /** The languages in which the executor offers functions. */
  readonly languages: readonly string[];
  readonly signal: AbortSignal;
}

/**
 * Runs a program that sets up functions, like any block.
 *
 * @throws FunctionSetupError with the reason if it fails or its language cannot run here.
 */
export async function runSetup(
  { language, code, check }: SetupProgram,
  { place, languages, signal }: SetupConditions,
): Promise<void> {
  if (!languages.includes(language)) {
    throw new FunctionSetupError(`${language} functions cannot be set up: nothing here runs ${language}`, {
      remedy: `Install ${language} where the code runs, or leave the functions out.`,
    });
  }
  const displayRoom = { count: 0, bytes: 0 };
  const end = new RunEnd([signal]);
  const conditions = { index: 0, end, timeoutMs, maxOutputBytes: 1_048_576, displayRoom, setup: true } as const;
  try {
    const { result } = await runBlock({ language, code }, place, conditions);
    check(result);
  } finally {
    end.settle();
  }
}
