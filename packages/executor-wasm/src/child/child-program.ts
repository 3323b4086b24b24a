import { readFileSync } from "node:fs";
import { asOneModule, cellScripts, notebookModule, plotsModule } from "@fenced/executor-kit/interpreter";

const wire: string = readFileSync(new URL("./wire.mjs", import.meta.url), "utf8");
const harden: string = readFileSync(new URL("./harden.mjs", import.meta.url), "utf8");
const limitMemory: string = readFileSync(new URL("./limit-memory.mjs", import.meta.url), "utf8");
const hostFileSystem: string = readFileSync(new URL("./host-file-system.mjs", import.meta.url), "utf8");
const packageFiles: string = readFileSync(new URL("./package-files.mjs", import.meta.url), "utf8");
const python: string = readFileSync(new URL("./python.mjs", import.meta.url), "utf8");
const paths: string = readFileSync(new URL("./paths.mjs", import.meta.url), "utf8");
const moduleNames: string = readFileSync(new URL("./module-names.mjs", import.meta.url), "utf8");
const javaScript: string = readFileSync(new URL("./javascript.mjs", import.meta.url), "utf8");
const guestConsole: string = readFileSync(new URL("./guest/console.mjs", import.meta.url), "utf8");
const guestTimers: string = readFileSync(new URL("./guest/timers.mjs", import.meta.url), "utf8");
const guestProcess: string = readFileSync(new URL("./guest/process.mjs", import.meta.url), "utf8");
const guestFiles: string = readFileSync(new URL("./guest/files.mjs", import.meta.url), "utf8");
const guestModules: string = readFileSync(new URL("./guest/modules.mjs", import.meta.url), "utf8");
const guest: string = readFileSync(new URL("./guest/guest.mjs", import.meta.url), "utf8");

const micropip: string = readFileSync(new URL("./micropip.py", import.meta.url), "utf8");
const blocks: string = readFileSync(new URL("./blocks.py", import.meta.url), "utf8");

/** What a Python interpreter has loaded when it starts. */
export interface PythonPrograms {
  /** The sources of modules, by name, in the order in which they are loaded. */
  readonly modules: Readonly<Record<string, string>>;
  /** The path of a wheel from which these modules import. */
  readonly wheel?: string;
}

/** What runs blocks. */
export const blockPrograms: PythonPrograms = {
  modules: {
    _fenced: blocks,
    _fenced_displays: `${notebookModule}\nprepare(sys.modules["_fenced"].send_display, ${JSON.stringify(plotsModule)})\n`,
    _fenced_micropip: micropip,
  },
};

/**
 * The program of the Python interpreter's process, as a single module, since that process may not read any of our
 * files.
 */
export const pythonProcess: string = asOneModule([wire, harden, limitMemory, hostFileSystem, packageFiles, python]);

/** The same for the JavaScript interpreter. */
export const javaScriptProcess: string = asOneModule([
  wire,
  harden,
  limitMemory,
  paths,
  cellScripts,
  moduleNames,
  javaScript,
]);

const guestParts = asOneModule([guestConsole, guestTimers, guestProcess, guestFiles, guestModules, guest]);

/** The program that runs in QuickJS beside the blocks, as an expression: a function that creates it. */
export const guestProgram: string = `(function (send, received, libraries) {\n"use strict";\n${guestParts}\nreturn makeGuest(send, received, libraries);\n})`;
