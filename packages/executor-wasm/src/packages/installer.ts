import { readFileSync } from "node:fs";
import path from "node:path";
import { joinSignals } from "@fenced/core/abort";
import type { RichPiece } from "@fenced/executor-kit/displays";
import { blockPrograms, type PythonPrograms } from "../child/child-program.ts";
import { Tree } from "../files/tree.ts";
import { findInstalled, owner } from "../interpreter/installed.ts";
import { Interpreter, type InterpreterOptions } from "../interpreter/interpreter.ts";
import { PackageRequests, type PackagePlaces } from "./package-requests.ts";

const wheels: string = readFileSync(new URL("./guest/wheels.py", import.meta.url), "utf8");
const choose: string = readFileSync(new URL("./guest/choose.py", import.meta.url), "utf8");

/** Chooses and unpacks wheels, in an interpreter that has loaded `installerPrograms()`. */
const installProgram: string = readFileSync(new URL("./guest/install.py", import.meta.url), "utf8");

/** What that interpreter has loaded; the wheel, `packaging`, is unmodified. */
function installerPrograms(): PythonPrograms {
  const manifest = findInstalled(`${owner}/package.json`);
  const wheel = path.join(path.dirname(manifest), "vendor", "packaging-26.3-py3-none-any.whl");
  return { modules: { ...blockPrograms.modules, wheels, choose }, wheel };
}

/** All programs; part of the name of an image, so that it changes with them. */
export const programs: readonly string[] = [wheels, choose, installProgram];

/** Milliseconds that an installation may take, including the index's time. */
const mostMs = 600_000;
const mebibyte = 1_048_576;
const memoryBytes = 768 * mebibyte;
/** Maximum length of the program's message when it fails. */
const mostSaid = 4000;

/** The packages could not be installed; the message says why. */
export class InstallationError extends Error {}

/** Options of the interpreter that installs, as in sessions. */
export type InstallerOptions = Pick<InterpreterOptions, "cacheDirectory" | "sandboxed" | "mark">;

/** What to install. */
export interface InstallationPlan {
  /** Requirements. */
  readonly install: readonly string[];
  /** Names and identities of the folder's wheels. */
  readonly folder: readonly (readonly [name: string, identity: string])[];
  /** Whether there is an index. */
  readonly index: boolean;
}

/**
 * Chooses and unpacks wheels. Untrusted files are read only in an interpreter of their own.
 *
 * @throws InstallationError if that is not possible.
 */
export async function runInstaller(
  options: InstallerOptions,
  plan: InstallationPlan,
  places: PackagePlaces,
  caller: AbortSignal,
): Promise<void> {
  const signal = joinSignals(caller, AbortSignal.timeout(mostMs));
  const problem = await runProgram(options, plan, places, signal);
  caller.throwIfAborted();
  if (signal.aborted) throw new InstallationError(`Installing them took more than ${mostMs / 60_000} minutes.`);
  if (problem !== undefined) throw new InstallationError(problem);
}

/** Returns the program's message if it fails. */
async function runProgram(
  options: InstallerOptions,
  plan: InstallationPlan,
  places: PackagePlaces,
  signal: AbortSignal,
): Promise<string | undefined> {
  const requests = new PackageRequests(places);
  const interpreter = await Interpreter.start(
    {
      ...options,
      engine: "Python",
      programs: installerPrograms(),
      memoryBytes,
      functionsModule: "functions",
      tree: new Tree(mebibyte),
      storageBytes: mebibyte,
      acceptCalls: undefined,
      requests: async (fields, bytes) => requests.answer(fields, bytes),
      packages: undefined,
      onLost: () => {},
    },
    signal,
  );
  const stdin = JSON.stringify(plan);
  const block = { language: "python", code: installProgram, env: {}, timeoutMs: mostMs, stdin };
  let said = "";
  const write = ({ data }: RichPiece): undefined => {
    said = `${said}${Buffer.from(data).toString()}`.slice(0, mostSaid);
  };
  try {
    const { exitCode, stateLost } = await interpreter.run(block, { signal, write });
    if (stateLost === true) return "The interpreter that read the wheels and the index crashed.";
    if (exitCode !== 0) return said.trim();
    requests.finish();
    return undefined;
  } finally {
    requests.close();
    await interpreter.kill();
  }
}
