import { readFileSync } from "node:fs";
import { attachProgram, sessionServerProgram, supervisorProgram } from "../python-programs.ts";

const bootProgram: string = readFileSync(new URL("./boot.sh", import.meta.url), "utf8");
const inventoryProgram: string = readFileSync(new URL("./inventory.sh", import.meta.url), "utf8");
const loadProgram: string = readFileSync(new URL("./load.py", import.meta.url), "utf8");
const loadCompiledProgram: string = readFileSync(new URL("./load_compiled.py", import.meta.url), "utf8");
const pythonProgram: string = readFileSync(new URL("./python.sh", import.meta.url), "utf8");

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
   * Nothing else is meant to run in this place, such as a dedicated container: a reset kills every process except the
   * supervisor and the first one, and the supervisor leaves the clean-up to the end of the place. Default: false.
   */
  readonly alone?: boolean;
  /**
   * The place is this host, and the user is this program's: programs get exactly the given variables, plus the
   * supervisor's variables that start with `FENCED_`. These variables also identify the supervisor's own processes, in
   * case it cannot end them itself, so programs of the same user can trace them. Cannot be combined with `alone`.
   * Default: false.
   */
  readonly onHost?: boolean;
  /**
   * Absolute path of a file in the workspace. The supervisor reports its content and appends an `r`, so that the host
   * can tell whether both see the same directory. The supervisor also listens on a socket with this path and `.sock`
   * added. Default: none.
   */
  readonly probe?: string;
  /**
   * Absolute paths there. The supervisor reports which device and inode each one is, and which kernel says so: the
   * inventory's `mounts` and `kernel`. Default: none.
   */
  readonly mounts?: readonly string[];
  /**
   * The name of the abstract socket of a keeper: a process that ends the place when the connection ends or is silent
   * for a while. The supervisor sends it a byte whenever it hears from the host. The number of a descriptor, if the keeper
   * has started the supervisor and left it a socket; after `server:`, if it is the server of a session. Linux only.
   * Default: no keeper.
   */
  readonly keeper?: string;
  /** A Node whose version need not be asked for, if it is the `node` among `programs`. Default: none. */
  readonly node?: {
    /** Absolute path there, without symbolic links. */
    readonly path: string;
    readonly version: string;
  };
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

/**
 * The command for the main process of a place whose session outlives the programs that use it: a server, to which
 * `SessionLink` connects over its standard streams and then through `attachCommand`, and the supervisor. It needs Linux
 * and Python 3.8 or later.
 *
 * @param name - the abstract socket for later connections.
 */
export function sessionServerCommand(name: string, config: SupervisorConfig): [string, ...string[]] {
  return [...pythonCommand(sessionServerProgram), "", name, supervisorProgram, ...wordsOf(config)];
}

/**
 * Makes a session's server of a main process that is already running, where the command must be short: that one waits at an
 * abstract socket, takes the two descriptors that come over its first connection, reads the program from the first one as
 * `load.py` does, and becomes it. The first word of the program is then the descriptor of that connection. `SessionLink`
 * continues on the streams.
 *
 * @param keeper - the abstract socket at which the main process waits.
 * @param name - the abstract socket for later connections.
 */
export function sessionServerLoader(keeper: string, name: string, config: SupervisorConfig): SupervisorLoader {
  const words = [sessionServerProgram, "", name, supervisorProgram, ...wordsOf(config)];
  return { command: [...attachCommand(keeper), "starting"], program: sized(Buffer.from(words.join("\0"))) };
}

/** A program of this host that contains a supervisor, such as a sandbox, and the server of its session outside of it. */
export interface OuterServer {
  /** The abstract socket for later connections. */
  readonly name: string;
  /** Absolute path of Python 3.8 or later, which nothing in there can have changed. */
  readonly python: string;
  /** The program's command, which begins with an absolute path; it gets the server's standard streams for the supervisor. */
  readonly command: readonly string[];
  /**
   * The last descriptor that the server is started with, which it keeps to itself; the program gets those before it. In
   * there, this one leads to the server: the supervisor's `keeper` is `server:` and the number.
   */
  readonly control: number;
}

/** The command for the server of a session whose supervisor is in a program that the server starts. Linux only. */
export function outerServerCommand({ name, python, command, control }: OuterServer): [string, ...string[]] {
  return [...trustedPython(python, sessionServerProgram), "", name, "", String(control), ...command];
}

/**
 * The command that connects its standard streams to a session.
 *
 * @param python - absolute path of the Python to use. Default: the first one on the `PATH`.
 */
export function attachCommand(name: string, python?: string): [string, ...string[]] {
  return [...(python === undefined ? pythonCommand(attachProgram) : trustedPython(python, attachProgram)), name];
}

function trustedPython(python: string, program: string): [string, ...string[]] {
  return [python, "-I", "-S", "-X", "utf8", "-c", program];
}

/** How to start the supervisor where the command must be short. */
export interface SupervisorLoader {
  /** The command, a few hundred bytes long. It needs Python 3.8 or later; without it, it says so and fails. */
  readonly command: readonly [string, ...string[]];
  /** What to write to its standard input before you pass the streams to `connectSupervisor` or `SessionLink`. */
  readonly program: Uint8Array;
}

/**
 * Starts the supervisor where the command must be short, for example because it is part of a URL: the programs follow
 * on standard input. Needs a POSIX shell as `sh`, and Python.
 *
 * @example
 * const { command, program } = supervisorLoader({ directory: "/tmp/session", workspace: "/workspace" });
 */
export function supervisorLoader(config: SupervisorConfig): SupervisorLoader {
  return { command: pythonCommand(loadProgram), program: sized(programAndWords(config)) };
}

/** A supervisor that a Python program of the caller becomes, once that has done something else. */
export interface SupervisorContinuation {
  /** How that program ends. It needs Python 3.8 or later, with the options `-I -S -X utf8`. */
  readonly python: string;
  /** What to write to its standard input before you pass the streams to `connectSupervisor`. */
  readonly program: Uint8Array;
}

/**
 * Continues a Python program of the caller as the supervisor, without starting another Python.
 *
 * @param compiled - what `compileSupervisor` returned, which halves the start of the same Python. Default: nothing.
 */
export function supervisorContinuation(config: SupervisorConfig, compiled?: Uint8Array): SupervisorContinuation {
  const program = Buffer.concat([sized(programAndWords(config)), sized(compiled ?? Buffer.from("\0"))]);
  return { python: loadCompiledProgram, program };
}

function programAndWords(config: SupervisorConfig): Buffer {
  return Buffer.from([supervisorProgram, ...wordsOf(config)].join("\0"));
}

function sized(bytes: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(String(bytes.length).padStart(sizeDigits, "0")), bytes]);
}

/**
 * A command that runs a Python program the way the supervisor is run: without importing anything from the work
 * directory or the image. Without Python, it says so and fails.
 */
export function pythonCommand(program: string): [string, ...string[]] {
  return ["sh", "-c", pythonProgram, "fenced", program];
}

/** Number of digits before the program that `load.py` reads. */
const sizeDigits = 10;

function wordsOf(config: SupervisorConfig): string[] {
  const {
    directory,
    workspace,
    programs = [],
    mounts = [],
    path = "",
    alone,
    onHost,
    probe = "",
    keeper = "",
    node,
  } = config;
  const knownNode = node ? `${node.version} ${node.path}` : "";
  const kind = alone === true ? "alone" : onHost === true ? "host" : "";
  return [directory, workspace, probe, path, kind, keeper, knownNode, String(mounts.length), ...mounts, ...programs];
}
