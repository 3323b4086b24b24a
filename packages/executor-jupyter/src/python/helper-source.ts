import { blocksSource } from "./helper-blocks-source.ts";
import { filesSource } from "./helper-files-source.ts";
import { processesSource } from "./helper-processes-source.ts";
import { sessionSource } from "./helper-session-source.ts";

/**
 * The module `_fenced` that runs in a Python kernel beside the user's code: ends processes, runs shell blocks, and
 * reads and writes files. Python 3.8 or later, standard library only. It keeps out of the user's variables.
 */
export const helperSource: string = [
  sessionSource,
  processesSource,
  blocksSource,
  filesSource,
  String.raw`
actions = {
    each.__name__: each
    for each in (begin, end, kill, interrupt, push_env, pop_env, offer, load, list_files, read_file, write_file, remove_file)
}
`,
].join("\n");
