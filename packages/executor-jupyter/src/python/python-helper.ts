import { readFileSync } from "node:fs";
import { BackendUnavailableError, FileNotFoundError, InvalidInputError, WorkspacePathError } from "@fenced/core";
import { untilAborted, within } from "@fenced/core/abort";
import { PlaceGone, removalFunctions } from "@fenced/executor-kit";
import { keeperText, sharedModules } from "@fenced/executor-kit/supervisor";
import { field, textField, texts } from "../fields.ts";
import type { KernelRequest } from "../kernel/kernel-request.ts";
import type { Kernel } from "../kernel/kernel.ts";

const processesProgram: string = readFileSync(new URL("./processes.py", import.meta.url), "utf8");
const filesProgram: string = readFileSync(new URL("./files.py", import.meta.url), "utf8");
const blocksProgram: string = readFileSync(new URL("./blocks.py", import.meta.url), "utf8");
const callsProgram: string = readFileSync(new URL("./calls.py", import.meta.url), "utf8");
const loopsProgram: string = readFileSync(new URL("./loops.py", import.meta.url), "utf8");
const sessionProgram: string = readFileSync(new URL("./session.py", import.meta.url), "utf8");
const linksProgram: string = readFileSync(new URL("./links.py", import.meta.url), "utf8");
const keptProgram: string = readFileSync(new URL("./kept.py", import.meta.url), "utf8");
const keeperProgram: string = keeperText(readFileSync(new URL("./keeper.py", import.meta.url), "utf8"), true);
const leashProgram: string = readFileSync(new URL("./leash.sh", import.meta.url), "utf8");

/** The modules of the helper, in the order in which they import each other. */
const helperModules: Readonly<Record<string, string>> = {
  ...sharedModules,
  _fenced_processes: processesProgram,
  _fenced_files: filesProgram,
  _fenced_blocks: blocksProgram,
  _fenced_calls: callsProgram,
  _fenced_loops: loopsProgram,
  _fenced_links: linksProgram,
  _fenced_kept: keptProgram,
  _fenced: sessionProgram,
};

/**
 * Turns the dictionary `programs` into modules, and leaves no name in the user's variables. The modules of a session that
 * outlives its program stay.
 */
const installProgram = `
import sys, types
if getattr(sys.modules.get("_fenced_kept"), "kept", None) is None:
    for name, program in programs.items():
        module = sys.modules[name] = types.ModuleType(name)
        exec(compile(program, "<" + name + ">", "exec"), module.__dict__)
`;

/** What the helper receives at the start of the session. */
export interface HelperSettings {
  /** A value that only this executor knows; all processes that the kernel starts carry it. */
  readonly mark: string;
  /** An existing directory of the kernel's host for the helper's own directory. Default: its temporary directory. */
  readonly scratch: string | undefined;
  /** The workspace, as the kernel names it. Default: the kernel's working directory. */
  readonly workspace: string | undefined;
  /** Make the helper create its own workspace, which is deleted with the session. */
  readonly createWorkspace: boolean;
  /** Environment variables for all blocks. */
  readonly env: Readonly<Record<string, string>>;
  /** True if functions will be set up, so that programs must find their modules. */
  readonly hasFunctions: boolean;
  /** The session outlives its program. Default: it ends with it. */
  readonly keep?: KeepSettings | undefined;
}

/** How a kernel is kept. */
export interface KeepSettings {
  /** The keeper's abstract socket. */
  readonly socket: string;
  /** Identifies the connection of the first program. */
  readonly link: string;
  /** The socket of the keeper of an earlier kernel, which has the files. Default: none. */
  readonly heirOf: string | undefined;
  /** An earlier program has left the session: without that keeper, it is over. */
  readonly isLeft: boolean;
  /** The workspace is deleted with the session. */
  readonly ownsWorkspace: boolean;
}

/** The session of a kernel is over, and nothing but this program would end the kernel. */
export class KernelAbandoned extends PlaceGone {}

/** What the helper reports at the start of the session. Paths are those of the kernel's host. */
export interface HelperReport {
  readonly workspace: string;
  /** The directory for function modules. */
  readonly functions: string;
  /** The directory for the shell command that calls host functions. */
  readonly commands: string;
  /** Which of `bash` and `sh` are installed. */
  readonly shells: readonly string[];
  /** Whether programs can call host functions, which takes a kernel with a thread for its control channel. */
  readonly calls: boolean;
}

/** Milliseconds within which the control channel answers, unless the kernel is stuck in native code. */
const demandDeadlineMs = 5000;
/** Milliseconds for one step of reading or writing files: a page of a listing, a piece of a file. */
const stepDeadlineMs = 30_000;
/** Milliseconds to install the helper in a kernel, which may first have to finish someone else's cell. */
const installDeadlineMs = 120_000;

/**
 * The helper that this package keeps in a Python kernel. Code can change it, so its answers prove nothing: each has a
 * time limit and is checked.
 */
export class PythonHelper {
  readonly #kernel: Kernel;
  #answersAside = false;

  private constructor(kernel: Kernel) {
    this.#kernel = kernel;
  }

  /** That of a kernel that is kept, which has installed it before. */
  static of(kernel: Kernel): PythonHelper {
    const helper = new PythonHelper(kernel);
    helper.#answersAside = true;
    return helper;
  }

  /**
   * Installs the helper in a kernel, outside the user's namespace.
   *
   * @throws InvalidInputError if the kernel cannot be kept; PlaceGone if the session that it is to continue is over, or another program's.
   */
  static async install(
    kernel: Kernel,
    settings: HelperSettings,
    signal: AbortSignal,
  ): Promise<{ readonly helper: PythonHelper; readonly report: HelperReport }> {
    const { keep } = settings;
    const code = `exec(${pythonLiteral(installProgram)}, {"programs": ${JSON.stringify(helperModules)}})`;
    const helper = new PythonHelper(kernel);
    const beginning = helper.#run(code, "begin", {
      mark: settings.mark,
      scratch: settings.scratch ?? null,
      directory: settings.workspace ?? null,
      create: settings.createWorkspace,
      env: settings.env,
      has_functions: settings.hasFunctions,
      leash: `${removalFunctions}\n${leashProgram}`,
      keep: keep && {
        socket: keep.socket,
        link: keep.link,
        heir_of: keep.heirOf ?? "",
        is_left: keep.isLeft,
        owns_workspace: keep.ownsWorkspace,
        keeper: keeperProgram,
        removal: removalFunctions,
      },
    });
    const report = await helper.#answered(untilAborted(beginning, signal), "begin", installDeadlineMs);
    if (report === null) throw new PlaceGone("another program has connected to it first");
    if (field(report, "abandoned") === true) throw new KernelAbandoned("its files are gone");
    if (field(report, "over") === true) throw new PlaceGone("its files are gone");
    const problem = textField(report, "problem");
    if (problem !== "") throw notKept(problem);
    helper.#answersAside = field(report, "aside") === true;
    return { helper, report: PythonHelper.reportOf(report) };
  }

  /** Checks what the helper reported. */
  static reportOf(value: unknown): HelperReport {
    return {
      workspace: textField(value, "workspace"),
      functions: textField(value, "functions"),
      commands: textField(value, "commands"),
      shells: texts(field(value, "shells")).filter((name) => name === "bash" || name === "sh"),
      calls: field(value, "calls") === true,
    };
  }

  /** Asks the helper to do something after the kernel's earlier work. A stopped kernel never answers. */
  async ask(name: string, parameters: object = {}): Promise<unknown> {
    return this.#run("", name, parameters);
  }

  /**
   * Asks it for one step of a file operation. It answers while code runs if the kernel has a separate control thread,
   * otherwise after the code.
   *
   * @throws FileNotFoundError, WorkspacePathError or InvalidInputError if the path is wrong in that way;
   * BackendUnavailableError if the kernel does not answer in time.
   */
  async step(name: string, parameters: object): Promise<unknown> {
    if (!this.#answersAside) return this.#run("", name, parameters);
    const answer = this.#kernel.control({ name, arguments: parameters }).finished;
    return valueOf(await this.#answered(answer, name, stepDeadlineMs), name);
  }

  /** Asks it to do something at once, even while code runs; `undefined` if the kernel is stuck and does not answer in time. */
  async demand(name: string, parameters: object = {}, deadlineMs: number = demandDeadlineMs): Promise<unknown> {
    const { finished } = this.#kernel.control({ name, arguments: parameters });
    try {
      const answer = await within(deadlineMs, finished);
      return answer === undefined ? undefined : valueOf(answer, name);
    } catch {
      return undefined;
    }
  }

  /** Starts a shell block; it is interrupted like a cell. */
  shell(program: string, code: string, stdin: string | undefined): KernelRequest {
    const words = [program, code].map(pythonLiteral);
    return this.#kernel.execute({
      code: `__import__("_fenced_blocks").shell(${words.join(", ")}, ${stdin === undefined ? "None" : pythonLiteral(stdin)})`,
      expressions: { exit: '__import__("_fenced").Reply(__import__("_fenced_blocks").shell_exit)' },
      visible: true,
    });
  }

  async #answered<T>(answer: Promise<T>, name: string, deadlineMs: number): Promise<T> {
    const value = await within(
      deadlineMs,
      answer.then((it) => ({ it })),
    );
    if (value) return value.it;
    throw new BackendUnavailableError(`The kernel has not answered for ${deadlineMs} ms (${name})`, {
      remedy: "It may be busy in native code, or stopped: call again later, or call `restart()` for a new kernel.",
    });
  }

  async #run(code: string, name: string, parameters: object): Promise<unknown> {
    const asked = `__import__("_fenced").ask(${pythonLiteral(name)}, ${pythonLiteral(JSON.stringify(parameters))})`;
    const reply = await this.#kernel.execute({ code, expressions: { answer: asked } }).finished;
    return valueOf(expressionValue(reply, "answer"), name);
  }
}

/** The value of an expression that was sent along, as JSON. */
export function expressionValue(reply: Readonly<Record<string, unknown>>, name: string): unknown {
  const data = field(field(reply["user_expressions"], name), "data");
  return field(data, "application/json");
}

/** A string as a Python literal. JSON literals are valid Python, lone surrogates included. */
function pythonLiteral(text: string): string {
  return JSON.stringify(text);
}

function valueOf(answer: unknown, name: string): unknown {
  const error = field(answer, "error");
  if (error === undefined && answer !== undefined) return field(answer, "value");
  const remedy = "`files.list()` shows which files there are.";
  if (error === "outside") throw new WorkspacePathError("The path is outside the workspace", { remedy });
  if (error === "not_found") throw new FileNotFoundError("There is no such file in the workspace", { remedy });
  if (error === "not_a_file") throw new InvalidInputError("The path does not name a regular file", { remedy });
  if (error === "in_the_way") {
    throw new InvalidInputError("There already is something that cannot be replaced", {
      remedy: "Only a file replaces a file: remove what is there with `files.remove()`, or choose another path.",
    });
  }
  if (error === "other_file_system") {
    throw new InvalidInputError("It is on another file system, so it cannot be moved", {
      remedy: "Something is mounted in the workspace: copy it in a block (`cp -a`), then remove the original.",
    });
  }
  if (error === "name") throw new InvalidInputError("A name in the path is too long", { remedy: "Shorten it." });
  const reason = textField(answer, "reason") || "it did not answer";
  throw new BackendUnavailableError(`Fenced's helper in the kernel failed (${name}): ${reason}`, {
    remedy: "Restart the executor, and make sure that the kernel's temporary directory is writable.",
  });
}

/** @param problem - such as "it does not run on Linux". */
export function notKept(problem: string): InvalidInputError {
  return new InvalidInputError(`A session in this kernel cannot outlive its program: ${problem}`, {
    remedy:
      "Leave `keepAliveMs` out, or use a Python kernel with ipykernel 6 or later that a Jupyter server has started on its own " +
      "Linux machine.",
  });
}
