import { BackendUnavailableError } from "@fenced/core";
import { Tree } from "../files/tree.ts";
import { Interpreter, type InterpreterOptions } from "../interpreter/interpreter.ts";
import { ImageCache } from "./image-cache.ts";
import { installProgram, programs, toolFiles, toolsProgram } from "./package-programs.ts";
import { PackageRequests, type PackagePlaces } from "./package-requests.ts";

/** Milliseconds that an installation may take, including the index's time. */
const mostMs = 600_000;
const mebibyte = 1_048_576;
const memoryBytes = 768 * mebibyte;
/** Maximum length of the program's message when it fails. */
const mostSaid = 4000;

/** This process's open images of the tools, by cache directory and key. Never closed, because all installations use them. */
const tools = new Map<string, number>();

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
  const signal = AbortSignal.any([caller, AbortSignal.timeout(mostMs)]);
  const packages = await openTools(options, caller);
  const problem = await runProgram(options, { code: installProgram, plan, places, packages }, signal);
  caller.throwIfAborted();
  if (signal.aborted) throw new InstallationError(`It took more than ${mostMs / 60_000} minutes.`);
  if (problem !== undefined) throw new InstallationError(problem);
}

async function openTools(options: InstallerOptions, signal: AbortSignal): Promise<number> {
  const cache = new ImageCache(options.cacheDirectory, "packages-tools-");
  const key = cache.nameOf(programs);
  const known = tools.get(`${cache.directory}/${key}`);
  if (known !== undefined) return known;
  const made =
    cache.open(key) ??
    (await cache.make(async (image) => {
      const places = { folder: undefined, index: undefined, packed: () => false, image };
      const problem = await runProgram(options, { code: toolsProgram, places, files: toolFiles() }, signal);
      signal.throwIfAborted();
      if (problem === undefined) return key;
      throw new BackendUnavailableError(`The program that installs packages failed: ${problem}`, {
        remedy: "Reinstall @fenced/executor-wasm.",
      });
    }));
  if (made === undefined) throw new Error("The image of the tools was not kept.");
  tools.set(`${cache.directory}/${key}`, made);
  return made;
}

interface ProgramRun {
  readonly code: string;
  readonly plan?: InstallationPlan;
  readonly places: PackagePlaces;
  readonly packages?: number;
  readonly files?: ReadonlyMap<string, Uint8Array>;
}

/** Returns the program's message if it fails. */
async function runProgram(
  options: InstallerOptions,
  { code, plan, places, packages, files = new Map() }: ProgramRun,
  signal: AbortSignal,
): Promise<string | undefined> {
  const tree = new Tree(16 * mebibyte);
  for (const [name, content] of files) {
    const file = tree.makeDetached();
    file.content.write(0, content);
    tree.attach(name, file);
  }
  const requests = new PackageRequests(places);
  const interpreter = await Interpreter.start(
    {
      ...options,
      engine: "Python",
      memoryBytes,
      functionsModule: "functions",
      tree,
      storageBytes: mebibyte,
      acceptCalls: undefined,
      requests: async (fields, bytes) => requests.answer(fields, bytes),
      packages,
      onLost: () => {},
    },
    signal,
  );
  const block = { language: "python", code, env: {}, timeoutMs: mostMs, stdin: JSON.stringify(plan ?? {}), signal };
  let said = "";
  try {
    const events = interpreter.run(block);
    for (;;) {
      const { done, value } = await events.next();
      if (done !== true) {
        if ("data" in value) said = `${said}${value.data.toString()}`.slice(0, mostSaid);
        continue;
      }
      if (value.stateLost === true) return "The interpreter that read the wheels and the index crashed.";
      if (value.exitCode !== 0) return said.trim();
      requests.finish();
      return undefined;
    }
  } finally {
    requests.close();
    await interpreter.kill();
  }
}
