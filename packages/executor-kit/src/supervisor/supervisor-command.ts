import { readFileSync } from "node:fs";

const bootProgram: string = readFileSync(new URL("./boot.sh", import.meta.url), "utf8");
const inventoryProgram: string = readFileSync(new URL("./inventory.sh", import.meta.url), "utf8");
const loadProgram: string = readFileSync(new URL("./load.py", import.meta.url), "utf8");
const pythonProgram: string = readFileSync(new URL("./python.sh", import.meta.url), "utf8");
const channelProgram: string = readFileSync(new URL("./channel.py", import.meta.url), "utf8");
const processesProgram: string = readFileSync(new URL("./processes.py", import.meta.url), "utf8");
const tunnelsProgram: string = readFileSync(new URL("./tunnels.py", import.meta.url), "utf8");
const feedsProgram: string = readFileSync(new URL("./feeds.py", import.meta.url), "utf8");
const relayProgram: string = readFileSync(new URL("./relay.py", import.meta.url), "utf8");
const keeperProgram: string = readFileSync(new URL("./keeper.py", import.meta.url), "utf8");
const blockFilesProgram: string = readFileSync(new URL("./block_files.py", import.meta.url), "utf8");
const blocksProgram: string = readFileSync(new URL("./blocks.py", import.meta.url), "utf8");
const mainProgram: string = readFileSync(new URL("./supervisor.py", import.meta.url), "utf8");

/** The supervisor's modules, in the order in which they import each other. */
const modules: Readonly<Record<string, string>> = {
  _fenced_channel: channelProgram,
  _fenced_processes: processesProgram,
  _fenced_tunnels: tunnelsProgram,
  _fenced_relay: relayProgram,
  _fenced_keeper: keeperProgram,
  _fenced_block_files: blockFilesProgram,
  _fenced_feeds: feedsProgram,
  _fenced_blocks: blocksProgram,
  _fenced_supervisor: mainProgram,
};

const carrierProgram: string = readFileSync(new URL("./carrier.py", import.meta.url), "utf8");

/**
 * The text of a Python program that only carries programs' connections to the host, over its standard streams, for
 * places where something else runs the blocks. It needs Python 3.8 or later on Linux, and takes two arguments: the
 * directory for the socket, and a line to print before the first frame. It waits for `hostMagic`, then exchanges frames
 * with `Tunnels`.
 *
 * @param program - another Python program that uses the same modules, `_fenced_channel` and `_fenced_tunnels`.
 */
export function carrierText(program: string = carrierProgram): string {
  return withModules({
    _fenced_channel: channelProgram,
    _fenced_tunnels: tunnelsProgram,
    _fenced_carrier: program,
  });
}

/** Settings of a supervisor. */
export interface SupervisorConfig {
  /**
   * Absolute path of a session directory where the supervisor runs; it creates the directory, and removes it when it
   * ends.
   */
  readonly directory: string;
  /** Absolute path of the directory in which programs run. */
  readonly workspace: string;
  /** Programs to look for; the result is in the `inventory`. Default: none. */
  readonly programs?: readonly string[];
  /** The `PATH` to search. Default: that of the place where it runs. */
  readonly path?: string;
  /**
   * Nothing else is meant to run in this place, such as a container of its own: a reset kills every process but the
   * supervisor and the first one, and the supervisor leaves clean-up to the end of the place. Default: false.
   */
  readonly alone?: boolean;
  /**
   * Absolute path of a file in the workspace. The supervisor reports its content and appends an `r`, which tells the
   * host whether it sees the same directory. The supervisor also listens on a socket with this path and `.sock` added.
   * Default: none.
   */
  readonly probe?: string;
  /**
   * The name of an abstract socket, at which a process waits that ends the place once the connection ends, or nothing has come over
   * it for a while: the supervisor sends a byte for each ping of the host. Linux only. Default: there is none.
   */
  readonly keeper?: string;
}

/**
 * The command that starts the supervisor with Python 3.8 or later or, if there is none, a shell program that only
 * reports what is available. It needs Linux and a POSIX shell as `sh`. Start it wherever programs should run, with
 * pipes for standard input and output, and pass these to `connectSupervisor`.
 *
 * @example
 * const command = supervisorCommand({ directory: "/tmp/session", workspace: "/workspace", programs: ["node"] });
 */
export function supervisorCommand(config: SupervisorConfig): [string, ...string[]] {
  return ["sh", "-c", bootProgram, "fenced", supervisorProgram, inventoryProgram, ...wordsOf(config)];
}

/** How to start the supervisor where a command has to be short. */
export interface SupervisorLoader {
  /** The command, of some hundred bytes. It needs Python 3.8 or later; where there is none, it says so and fails. */
  readonly command: readonly [string, ...string[]];
  /** What to write to its standard input, before the streams go to `connectSupervisor`. */
  readonly program: Uint8Array;
}

/**
 * What starts the supervisor where a command must be short, since it is part of an address, for example: the programs follow over
 * its standard input. There has to be a POSIX shell as `sh`, and Python.
 *
 * @example
 * const { command, program } = supervisorLoader({ directory: "/tmp/session", workspace: "/workspace" });
 */
export function supervisorLoader(config: SupervisorConfig): SupervisorLoader {
  const program = Buffer.from([supervisorProgram, ...wordsOf(config)].join("\0"));
  return {
    command: pythonCommand(loadProgram),
    program: Buffer.concat([Buffer.from(String(program.length).padStart(sizeDigits, "0")), program]),
  };
}

/**
 * A command that runs a program by the Python that is there, as the supervisor is run: nothing of the work directory or the image
 * is imported. Where there is no Python, it says so and fails.
 */
export function pythonCommand(program: string): [string, ...string[]] {
  return ["sh", "-c", pythonProgram, "fenced", program];
}

/** Digits before what `load.py` reads. */
const sizeDigits = 10;

function wordsOf({ directory, workspace, programs = [], path = "", alone, probe = "", keeper = "" }: SupervisorConfig) {
  return [directory, workspace, probe, path, alone === true ? "alone" : "", keeper, ...programs];
}

/** A program that creates modules from texts and runs them in this order. Their JSON is also valid Python. */
function withModules(programs: Readonly<Record<string, string>>): string {
  return `import sys, types
for name, program in ${JSON.stringify(programs)}.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(program, "<" + name + ">", "exec"), module.__dict__)
`;
}

const supervisorProgram = withModules(modules);
