import { spawn, type ChildProcess } from "node:child_process";
import { realpathSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { Duplex } from "node:stream";
import { BackendUnavailableError } from "@fenced/core";
import { blockEnvironment } from "@fenced/executor-kit";
import { blocksProgram, pythonProcess } from "../child/child-program.ts";

/** Megabytes of JavaScript heap for the interpreter's process, besides the interpreter's memory. */
const heapMegabytes = 256;

/** Options of `startProcess`. */
export interface ProcessOptions {
  readonly memoryBytes: number;
  /** Descriptor of the snapshot; without it, the process creates one and ends. */
  readonly snapshot?: number;
  /** A variable that identifies the process if this program dies first. */
  readonly mark?: { readonly name: string; readonly value: string };
}

/** A started process, and the stream to it. */
export interface StartedProcess {
  readonly child: ChildProcess;
  readonly socket: Duplex;
}

/** Pyodide's directory, as the permission model sees it. */
function pyodideDirectory(): string {
  const load = createRequire(import.meta.url);
  return path.dirname(realpathSync(load.resolve("pyodide/package.json")));
}

/** What a snapshot depends on, besides the version of Node. */
export function snapshotInputs(): readonly string[] {
  const manifest: unknown = createRequire(import.meta.url)("pyodide/package.json");
  return [JSON.stringify(manifest), blocksProgram, pythonProcess];
}

/**
 * Starts the process of a Python interpreter without anything it could do harm with: an empty environment, no access to
 * files but Pyodide's own, no child processes, threads or native add-ons, and no code from strings.
 */
export function startProcess({ memoryBytes, snapshot, mark }: ProcessOptions): StartedProcess {
  const directory = pyodideDirectory();
  const env = {
    ...blockEnvironment,
    HOME: "/home/pyodide",
    PATH: "/",
    LANG: "C.UTF-8",
    TMPDIR: "/tmp",
    USER: "web_user",
  };
  const plan = { directory, memoryBytes, env, program: blocksProgram, snapshot: snapshot !== undefined };
  const child = spawn(
    process.execPath,
    [...restrictions(directory), "--input-type=module", "--eval", pythonProcess, JSON.stringify(plan)],
    {
      cwd: directory,
      env: mark ? { [mark.name]: mark.value } : {},
      stdio: ["ignore", "ignore", "ignore", "pipe", snapshot ?? "ignore"],
    },
  );
  // After an error the stream ends, which is where it is noticed.
  child.on("error", () => {});
  const socket = child.stdio[3];
  if (socket instanceof Duplex) return { child, socket };
  throw new BackendUnavailableError("The Python interpreter could not be started: there is no stream to its process", {
    remedy: "Look at what keeps this program from starting processes.",
  });
}

/** Node's own restrictions on the code in a process. */
export function restrictions(readableDirectory: string): readonly string[] {
  return [
    "--no-warnings",
    "--no-addons",
    "--disallow-code-generation-from-strings",
    `--max-old-space-size=${heapMegabytes}`,
    permissionFlag(),
    `--allow-fs-read=${path.join(readableDirectory, "*")}`,
  ];
}

/** The permission model's flag had another name before it was stable. */
function permissionFlag(): string {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 13) ? "--permission" : "--experimental-permission";
}
