import { readFileSync } from "node:fs";
import { blockProcess } from "./blocks/block-process.ts";
import { blockSurroundings, interpreterText } from "./interpreters/interpreter-text.ts";
import { wireModule } from "./wire/wire.ts";
import { withModules } from "./with-modules.ts";

// Used by more than one program.
const channel: string = readFileSync(new URL("./wire/channel.py", import.meta.url), "utf8");
const processTable: string = readFileSync(new URL("./blocks/process_table.py", import.meta.url), "utf8");
const processes: string = readFileSync(new URL("./blocks/processes.py", import.meta.url), "utf8");
const usedResources: string = readFileSync(new URL("./blocks/used_resources.py", import.meta.url), "utf8");
const mounts: string = readFileSync(new URL("./files/mounts.py", import.meta.url), "utf8");
const tunnels: string = readFileSync(new URL("./tunnels/tunnels.py", import.meta.url), "utf8");
const files: string = readFileSync(new URL("./files/files.py", import.meta.url), "utf8");

/** The modules of the supervisor, in the order in which they run. */
export const supervisorModules: Readonly<Record<string, string>> = {
  _fenced_wire: wireModule,
  _fenced_channel: channel,
  _fenced_process_table: processTable,
  _fenced_processes: processes,
  _fenced_tunnels: tunnels,
  _fenced_relay: readFileSync(new URL("./tunnels/relay.py", import.meta.url), "utf8"),
  _fenced_keeper: readFileSync(new URL("./start/keeper.py", import.meta.url), "utf8"),
  _fenced_block_files: readFileSync(new URL("./blocks/block_files.py", import.meta.url), "utf8"),
  _fenced_feeds: readFileSync(new URL("./blocks/feeds.py", import.meta.url), "utf8"),
  _fenced_block_process: blockProcess,
  _fenced_used_resources: usedResources,
  _fenced_terminals: readFileSync(new URL("./blocks/terminals.py", import.meta.url), "utf8"),
  _fenced_block_output: readFileSync(new URL("./blocks/block_output.py", import.meta.url), "utf8"),
  _fenced_mounts: mounts,
  _fenced_user_site: readFileSync(new URL("./blocks/user_site.py", import.meta.url), "utf8"),
  _fenced_launch: readFileSync(new URL("./blocks/launch.py", import.meta.url), "utf8"),
  _fenced_blocks: readFileSync(new URL("./blocks/blocks.py", import.meta.url), "utf8"),
  _fenced_programs: readFileSync(new URL("./blocks/programs.py", import.meta.url), "utf8"),
  _fenced_greeting: readFileSync(new URL("./start/greeting.py", import.meta.url), "utf8"),
  _fenced_shortcut: readFileSync(new URL("./wire/shortcut.py", import.meta.url), "utf8"),
  _fenced_new_host: readFileSync(new URL("./keep_alive/new_host.py", import.meta.url), "utf8"),
  _fenced_supervisor: readFileSync(new URL("./supervisor.py", import.meta.url), "utf8"),
};

/** The supervisor, which runs until its host is gone. */
export const supervisorProgram: string = withModules(supervisorModules);

/** Loaded by the supervisor to keep a Python interpreter waiting, see `templateProgram`. */
export const warmProgram: string = withModules({
  _fenced_warm: readFileSync(new URL("./warm/warm.py", import.meta.url), "utf8"),
});

/** Loaded by the supervisor to measure the work directory. */
export const measureProgram: string = withModules({
  _fenced_measure: readFileSync(new URL("./files/measure.py", import.meta.url), "utf8"),
});

/** Loaded by the supervisor to read what the place uses. */
export const usageProgram: string = withModules({
  _fenced_usage: readFileSync(new URL("./files/usage.py", import.meta.url), "utf8"),
});

/** Loaded by the supervisor to go on with submitted runs without its host. */
export const runsProgram: string = withModules({
  _fenced_run_log: readFileSync(new URL("./runs/run_log.py", import.meta.url), "utf8"),
  _fenced_run_displays: readFileSync(new URL("./runs/run_displays.py", import.meta.url), "utf8"),
  _fenced_run_calls: readFileSync(new URL("./runs/run_calls.py", import.meta.url), "utf8"),
  _fenced_runs: readFileSync(new URL("./runs/runs.py", import.meta.url), "utf8"),
});

/** Answers one request for workspace files. */
export const filesProgram: string = withModules({
  _fenced_mounts: mounts,
  _fenced_files: files,
  _fenced_run_files: readFileSync(new URL("./files/run_files.py", import.meta.url), "utf8"),
});

/** Answers one request for the tree of the workspace. */
export const treesProgram: string = withModules({
  _fenced_mounts: mounts,
  _fenced_files: files,
  _fenced_trees: readFileSync(new URL("./files/trees.py", import.meta.url), "utf8"),
});

const watches: string = readFileSync(new URL("./files/watches.py", import.meta.url), "utf8");

/**
 * The source of a Python program that watches directories. It needs Python 3.8 or later on Linux.
 *
 * @param program - may import `_fenced_watches`, whose `Watch` has the events of a directory.
 */
export function watchingText(program: string): string {
  return withModules({ _fenced_watches: watches, _fenced_program: program });
}

/** Watches a directory of the workspace. */
export const watchProgram: string = withModules({
  _fenced_mounts: mounts,
  _fenced_files: files,
  _fenced_watches: watches,
  _fenced_run_watch: readFileSync(new URL("./files/run_watch.py", import.meta.url), "utf8"),
});

/** The waiting interpreter from which Python blocks are forked. */
export const templateProgram: string = withModules({
  _fenced_template_start: readFileSync(new URL("./warm/template_start.py", import.meta.url), "utf8"),
  _fenced_block_process: blockProcess,
  _fenced_used_resources: usedResources,
  _fenced_c_library: readFileSync(new URL("./warm/c_library.py", import.meta.url), "utf8"),
  _fenced_process_image: readFileSync(new URL("./warm/process_image.py", import.meta.url), "utf8"),
  _fenced_quick_end: readFileSync(new URL("./warm/quick_end.py", import.meta.url), "utf8"),
  _fenced_new_interpreter: readFileSync(new URL("./warm/new_interpreter.py", import.meta.url), "utf8"),
  _fenced_template: readFileSync(new URL("./warm/template.py", import.meta.url), "utf8"),
});

/** Loaded by the supervisor to keep a JavaScript interpreter waiting. */
export const spareProgram: string = withModules({
  _fenced_spare: readFileSync(new URL("./warm/spare.py", import.meta.url), "utf8"),
});

/** Loaded by the supervisor to keep interpreters that live from block to block, see `interpreterProgram`. */
export const sessionsProgram: string = withModules({
  _fenced_session_table: readFileSync(new URL("./interpreters/session_table.py", import.meta.url), "utf8"),
  _fenced_session_ends: readFileSync(new URL("./interpreters/session_ends.py", import.meta.url), "utf8"),
  _fenced_sessions: readFileSync(new URL("./interpreters/sessions.py", import.meta.url), "utf8"),
});

/** An interpreter that lives from block to block. */
export const interpreterProgram: string = interpreterText();

/**
 * Sources of Python modules for executors whose blocks run in an interpreter that lives on, by their names in
 * `sys.modules`. Python 3.8 or later.
 *
 * - `_fenced_block_surroundings`: sets and restores a block's variables, and selects the function modules that it
 *   imports;
 * - `_fenced_mounts`: finds and detaches what is mounted below a directory on Linux;
 * - `_fenced_process_table`: reads the process table on Linux.
 */
export const sharedModules: Readonly<
  Record<"_fenced_block_surroundings" | "_fenced_mounts" | "_fenced_process_table", string>
> = {
  _fenced_block_surroundings: blockSurroundings,
  _fenced_mounts: mounts,
  _fenced_process_table: processTable,
};

/**
 * The source of a Python program that carries programs' connections to the host, for places where something else runs
 * the blocks. It needs Python 3.8 or later on Linux.
 *
 * @param program - may import `_fenced_channel` and `_fenced_tunnels`, which exchange frames with `Tunnels`.
 */
export function carrierText(program: string): string {
  return withModules({
    _fenced_wire: wireModule,
    _fenced_channel: channel,
    _fenced_tunnels: tunnels,
    _fenced_carrier: program,
  });
}

/**
 * The source of a Python program that starts a supervisor and ends everything that is left once that has ended. It
 * needs Python 3.8 or later on Linux.
 *
 * @param program - may import `_fenced_processes`, which finds and kills processes, and `_fenced_mounts`, which detaches
 *   what is mounted below a directory.
 * @param hasServer - it may also import `_fenced_session_server`, which keeps the supervisor for programs that come and
 *   go.
 */
export function keeperText(program: string, hasServer: boolean): string {
  return withModules({
    _fenced_process_table: processTable,
    _fenced_processes: processes,
    _fenced_mounts: mounts,
    ...(hasServer ? serverModules : {}),
    _fenced_keeper: program,
  });
}

/** Takes the connections of a session that outlives the programs that use it. */
const serverModules: Readonly<Record<string, string>> = {
  _fenced_packets: readFileSync(new URL("./keep_alive/packets.py", import.meta.url), "utf8"),
  _fenced_sent_bytes: readFileSync(new URL("./keep_alive/sent_bytes.py", import.meta.url), "utf8"),
  _fenced_session_server: readFileSync(new URL("./keep_alive/session_server.py", import.meta.url), "utf8"),
};

/** The main process of a place whose session outlives the programs that use it; starts the supervisor. */
export const sessionServerProgram: string = withModules({
  _fenced_process_table: processTable,
  _fenced_processes: processes,
  ...serverModules,
  _fenced_main_process: readFileSync(new URL("./keep_alive/main_process.py", import.meta.url), "utf8"),
});

/** Connects its standard streams to such a session. */
export const attachProgram: string = readFileSync(new URL("./keep_alive/attach.py", import.meta.url), "utf8");
