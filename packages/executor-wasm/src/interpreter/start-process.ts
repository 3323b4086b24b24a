import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import path from "node:path";
import { Duplex, Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { BackendUnavailableError } from "@fenced/core";
import { blockEnvironment } from "@fenced/executor-kit";
import {
  blockPrograms,
  guestProgram,
  javaScriptProcess,
  pythonProcess,
  type PythonPrograms,
} from "../child/child-program.ts";
import { findInstalled, installedNode } from "./installed.ts";
import { infoDescriptor, inOsSandbox } from "./os-sandbox.ts";

/** Megabytes of JavaScript heap for an interpreter's process, besides the interpreter's memory. */
const heapMegabytes = 256;
/** Kilobytes of V8's stack in the process of QuickJS, whose own limit (in `javascript.mjs`) must be reached first. */
const stackKilobytes = 3900;

/**
 * How much of a function runs before V8 optimizes it: 8 to 55 times its default. To optimize the loop that evaluates Python takes more
 * than a second of another processor's time, and gains nothing; with this budget, what computes for longer, such as a hash, still is.
 */
const tieringBudget = 100_000_000;

/** Options of `startPython` and `startJavaScript`. */
export interface ProcessOptions {
  readonly memoryBytes: number;
  /** Whether the process is inside an OS sandbox as well. */
  readonly sandboxed: boolean;
  /** A variable that identifies the process if this program dies first. */
  readonly mark?: { readonly name: string; readonly value: string } | undefined;
}

/** A started process, and the stream to it. */
export interface StartedProcess {
  readonly child: ChildProcess;
  readonly socket: Duplex;
  /** The id of the interpreter's process, which in a sandbox is not the child's own; `undefined` if it did not start. */
  readonly pid: Promise<number | undefined>;
}

/** The descriptors that a Python interpreter reads: the snapshot that it starts from, and the file with its packages. */
export interface PythonFiles {
  readonly snapshot: number;
  readonly packages: number | undefined;
  /** Whether code can install more of them. */
  readonly installs: boolean;
}

/** How to start an interpreter's process: its program, the program's argument, and what it may read. */
interface ProcessPlan {
  readonly program: string;
  readonly plan: object;
  readonly directories: readonly string[];
  readonly flags: readonly string[];
  /** Descriptors that it inherits as numbers 4 and 6. */
  readonly inherited: readonly [fourth?: number | undefined, sixth?: number | undefined];
  readonly options: ProcessOptions;
}

/**
 * A file of a package, as the permission model sees it.
 *
 * @throws BackendUnavailableError if it is inside an archive, which only processes under Yarn's Plug'n'Play can read.
 */
function fileOf(module: string): string {
  const file = realpathSync(findInstalled(module));
  if (process.versions["pnp"] === undefined || !/\.zip[\\/]/.test(file)) return file;
  throw new BackendUnavailableError(`A package that interpreters need is in a zip archive: ${module}`, {
    remedy:
      "Set `nodeLinker: node-modules` in .yarnrc.yml, or make Yarn unpack the packages that the README of " +
      "@fenced/executor-wasm lists, with `dependenciesMeta` in the project's package.json.",
  });
}

function directoryOf(module: string): string {
  return path.dirname(fileOf(module));
}

/** What a snapshot depends on, besides the version of Node. */
export function snapshotInputs({ modules, wheel = "" }: PythonPrograms = blockPrograms): readonly string[] {
  const manifest = readFileSync(findInstalled("pyodide/package.json"), "utf8");
  return [manifest, JSON.stringify(modules), path.basename(wheel), pythonProcess];
}

/**
 * Starts the process of a Python interpreter.
 *
 * @param files - a snapshot of what it has loaded, and its packages; or the programs to load, to create a snapshot and end.
 */
export function startPython(options: ProcessOptions, files: PythonFiles | PythonPrograms): StartedProcess {
  const { memoryBytes } = options;
  const directory = directoryOf("pyodide/package.json");
  const env = {
    ...blockEnvironment,
    HOME: "/home/pyodide",
    MPLBACKEND: "module://_fenced_plots",
    PATH: "/",
    LANG: "C.UTF-8",
    TMPDIR: "/tmp",
    USER: "web_user",
  };
  const common = { program: pythonProcess, flags: [`--wasm-tiering-budget=${tieringBudget}`], options };
  if ("modules" in files) {
    const directories = [directory, ...(files.wheel === undefined ? [] : [path.dirname(files.wheel)])];
    return startProcess({ ...common, plan: { directory, memoryBytes, env, load: files }, directories, inherited: [] });
  }
  const { snapshot, packages, installs } = files;
  return startProcess({
    ...common,
    plan: { directory, memoryBytes, env, packages: packages !== undefined, installs },
    directories: [directory],
    inherited: [snapshot, packages],
  });
}

/** Starts the process of a JavaScript interpreter. */
export function startJavaScript(options: ProcessOptions): StartedProcess {
  const { memoryBytes } = options;
  const engine = directoryOf("quickjs-wasi/package.json");
  const files = {
    engine: path.join(engine, "dist/index.js"),
    wasm: path.join(engine, "quickjs.wasm"),
    extensions: path.join(engine, "extensions"),
    parser: path.join(directoryOf("acorn/package.json"), "dist/acorn.mjs"),
    typescript: fileOf("@swc/wasm-typescript"),
  };
  const inspect = directoryOf("object-inspect/package.json");
  const libraries = {
    buffer: fileOf("buffer/index.js"),
    "base64-js": fileOf("base64-js"),
    ieee754: fileOf("ieee754"),
    events: fileOf("events/events.js"),
    "path-browserify": fileOf("path-browserify"),
    "object-inspect": path.join(inspect, "index.js"),
    "./stringWidth": path.join(inspect, "stringWidth.js"),
    "./stringWidthRanges": path.join(inspect, "stringWidthRanges.js"),
  };
  const read = [files.parser, files.typescript, ...Object.values(libraries)].map((file) => path.dirname(file));
  return startProcess({
    program: javaScriptProcess,
    plan: { memoryBytes, guest: guestProgram, files, libraries },
    directories: [engine, ...new Set(read)],
    flags: [`--stack-size=${stackKilobytes}`],
    inherited: [],
    options,
  });
}

/**
 * Starts a process that has no means to do harm: an empty environment, no access to files except the interpreter's own, no
 * child processes, threads or native add-ons, and no code from strings.
 */
function startProcess({ program, plan, directories, flags, inherited, options }: ProcessPlan): StartedProcess {
  const { mark, sandboxed } = options;
  const node = installedNode();
  const words = [
    ...restrictions(directories, node.version),
    ...flags,
    "--input-type=module",
    "--eval",
    program,
    JSON.stringify(plan),
  ];
  const command = [node.file, ...words];
  const [first = "", ...rest] = sandboxed ? inOsSandbox(directories, command) : command;
  const child = spawn(first, rest, {
    cwd: directories[0],
    env: { ...node.env, ...(mark && { [mark.name]: mark.value }) },
    stdio: [
      ...(["ignore", "ignore", "ignore", "pipe"] as const),
      inherited[0] ?? "ignore",
      sandboxed ? "pipe" : "ignore",
      inherited[1] ?? "ignore",
    ],
  });
  // After an error the stream ends, and the reader notices.
  child.on("error", () => {});
  const socket = child.stdio[3];
  const pid = sandboxed ? processInside(child) : Promise.resolve(child.pid);
  if (socket instanceof Duplex) return { child, socket, pid };
  throw new BackendUnavailableError("The interpreter could not be started: there is no stream to its process", {
    remedy: "Check what keeps this program from starting processes, such as a limit on processes or open files.",
  });
}

/** The process that bubblewrap reports having started. */
async function processInside(child: ChildProcess): Promise<number | undefined> {
  const stream = child.stdio.at(infoDescriptor);
  if (!(stream instanceof Readable)) return undefined;
  const said = await text(stream).catch(() => "");
  const [, number] = /"child-pid":\s*(\d+)/.exec(said) ?? [];
  return number === undefined ? undefined : Number(number);
}

/** The restrictions of a version of Node on the code in a process. */
export function restrictions(readableDirectories: readonly string[], version: string): readonly string[] {
  return [
    "--no-warnings",
    "--no-addons",
    "--disallow-code-generation-from-strings",
    `--max-old-space-size=${heapMegabytes}`,
    permissionFlag(version),
    ...readableDirectories.map((each) => `--allow-fs-read=${path.join(each, "*")}`),
  ];
}

/** The permission model's flag had another name before it was stable. */
function permissionFlag(version: string): string {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 13) ? "--permission" : "--experimental-permission";
}
