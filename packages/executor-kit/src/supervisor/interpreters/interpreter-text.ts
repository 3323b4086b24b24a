import { readFileSync } from "node:fs";
import { blockProcess } from "../blocks/block-process.ts";
import { withModules } from "../with-modules.ts";

export const blockSurroundings: string = readFileSync(new URL("./block_surroundings.py", import.meta.url), "utf8");

/** A module that shows values as notebooks do where IPython is not installed; `prepare` starts it. Python 3.8 or later. */
export const notebookModule: string = readFileSync(new URL("./notebook.py", import.meta.url), "utf8");
/** The backend of matplotlib that shows its figures; an argument of `prepare`. */
export const plotsModule: string = readFileSync(new URL("./plots.py", import.meta.url), "utf8");

/**
 * The source of a Python program that runs blocks in one namespace, one after another, as whoever started it asks over a
 * socket. It needs Python 3.8 or later on Linux; `interpreter.py` says how it is started.
 *
 * @param additions - modules that run before its first block, by the names under which they import each other. They may
 *   import `_fenced_displays` and `_fenced_run_source`, and set `present`, `take_error` and `transform` there, to show
 *   values and errors otherwise than by printing them. Their names begin with `_fenced_`. Default: none.
 */
export function interpreterText(additions: Readonly<Record<`_fenced_${string}`, string>> = {}): string {
  return withModules({
    _fenced_work_directory: readFileSync(new URL("./work_directory.py", import.meta.url), "utf8"),
    _fenced_block_process: blockProcess,
    _fenced_descriptors: readFileSync(new URL("./descriptors.py", import.meta.url), "utf8"),
    _fenced_block_surroundings: blockSurroundings,
    _fenced_displays: readFileSync(new URL("./displays.py", import.meta.url), "utf8"),
    _fenced_run_source: readFileSync(new URL("./run_source.py", import.meta.url), "utf8"),
    _fenced_interpreter_fork: readFileSync(new URL("./interpreter_fork.py", import.meta.url), "utf8"),
    ...additions,
    _fenced_interpreter: readFileSync(new URL("./interpreter.py", import.meta.url), "utf8"),
  });
}
