import { BackendUnavailableError, FileNotFoundError, InvalidInputError, WorkspacePathError } from "@fenced/core";
import { field, textField, texts } from "../fields.ts";
import type { KernelRequest } from "../kernel/kernel-request.ts";
import type { RunningKernel } from "../kernel/running-kernel.ts";
import { within } from "../within.ts";
import { helperSource } from "./helper-source.ts";

/** What the helper is told at the session's beginning. */
export interface HelperSettings {
  /** A value of which this executor alone knows; all processes that the kernel starts carry it. */
  readonly mark: string;
  /** An existing directory of the kernel's host for the helper's own directory. Default: its temporary directory. */
  readonly scratch?: string;
  /** The workspace, as the kernel names it. Default: the kernel's working directory. */
  readonly workspace?: string;
  /** Make a workspace of the helper's own, which is deleted with the session. */
  readonly createWorkspace: boolean;
  /** Environment variables for all blocks. */
  readonly env: Readonly<Record<string, string>>;
  /** Modules to make importable, name to source; `undefined`: none will be. */
  readonly modules?: Readonly<Record<string, string>>;
}

/** What the helper says at the session's beginning. Paths are those of the kernel's host. */
export interface HelperReport {
  readonly workspace: string;
  /** The directory for function modules. */
  readonly functions: string;
  /** Which of `bash` and `sh` there are. */
  readonly shells: readonly string[];
}

/** Milliseconds within which the control channel answers, unless the kernel is stuck in something that is not Python. */
const controlDeadlineMs = 8000;

/** The helper that this package keeps in a Python kernel. */
export class PythonHelper {
  readonly #kernel: RunningKernel;
  #answersAside = false;

  private constructor(kernel: RunningKernel) {
    this.#kernel = kernel;
  }

  /** Puts the helper into a kernel. Its names stay out of the user's. */
  static async install(
    kernel: RunningKernel,
    settings: HelperSettings,
  ): Promise<{ readonly helper: PythonHelper; readonly report: HelperReport }> {
    const code = `import sys as _fenced_sys, types as _fenced_types
_fenced_sys.modules["_fenced"] = _fenced_types.ModuleType("_fenced")
exec(compile(${pythonLiteral(helperSource)}, "<fenced>", "exec"), _fenced_sys.modules["_fenced"].__dict__)
del _fenced_sys, _fenced_types
`;
    const helper = new PythonHelper(kernel);
    const report = await helper.#run(code, "begin", {
      mark: settings.mark,
      scratch: settings.scratch ?? null,
      directory: settings.workspace ?? null,
      create: settings.createWorkspace,
      env: settings.env,
      modules: settings.modules ?? null,
    });
    helper.#answersAside = field(report, "aside") === true;
    return { helper, report: reportOf(report) };
  }

  /**
   * Has the helper do something when the kernel has done what it was asked before.
   *
   * @throws FileNotFoundError, WorkspacePathError or InvalidInputError if that is what is wrong with a path.
   */
  async ask(name: string, parameters: object = {}): Promise<unknown> {
    return this.#run("", name, parameters);
  }

  /** The same though code is running, where the kernel has a channel aside for that; it waits as long as it takes. */
  async askAside(name: string, parameters: object = {}): Promise<unknown> {
    if (!this.#answersAside) return this.ask(name, parameters);
    return valueOf(await this.#kernel.control({ name, arguments: parameters }).finished, name);
  }

  /** The same at once, though code is running; `undefined`: the kernel is stuck and does not answer. */
  async demand(name: string, parameters: object = {}): Promise<unknown> {
    const { finished } = this.#kernel.control({ name, arguments: parameters });
    try {
      const answer = await within(controlDeadlineMs, finished);
      return answer === undefined ? undefined : valueOf(answer, name);
    } catch {
      return undefined;
    }
  }

  /** Starts a shell block; it is interrupted like a cell. */
  shell(program: string, code: string, stdin: string | undefined): KernelRequest {
    const words = [program, code].map(pythonLiteral);
    return this.#kernel.execute({
      code: `__import__("_fenced").shell(${words.join(", ")}, ${stdin === undefined ? "None" : pythonLiteral(stdin)})`,
      expressions: { exit: '__import__("_fenced").Reply(__import__("_fenced").shell_exit)' },
      visible: true,
    });
  }

  async #run(code: string, name: string, parameters: object): Promise<unknown> {
    const asked = `__import__("_fenced").ask(${pythonLiteral(name)}, ${pythonLiteral(JSON.stringify(parameters))})`;
    const reply = await this.#kernel.execute({ code, expressions: { answer: asked } }).finished;
    return valueOf(expressionValue(reply, "answer"), name);
  }
}

/** What an expression that was sent along came to, as JSON. */
export function expressionValue(reply: Readonly<Record<string, unknown>>, name: string): unknown {
  const data = field(field(reply["user_expressions"], name), "data");
  return field(data, "application/json");
}

/** A Python literal of a text. JSON's are, apart from lone surrogates, which Python has too. */
function pythonLiteral(text: string): string {
  return JSON.stringify(text);
}

function valueOf(answer: unknown, name: string): unknown {
  const error = field(answer, "error");
  if (error === undefined && answer !== undefined) return field(answer, "value");
  const remedy = "`files.list()` says which files there are.";
  if (error === "outside") throw new WorkspacePathError("The path leads out of the workspace", { remedy });
  if (error === "not_found") throw new FileNotFoundError("There is no such file in the workspace", { remedy });
  if (error === "not_a_file") throw new InvalidInputError("The path is not that of a regular file", { remedy });
  if (error === "name") throw new InvalidInputError("The path has a name that is too long", { remedy: "Shorten it." });
  const reason = textField(answer, "reason") || "it did not answer";
  throw new BackendUnavailableError(`Fenced's helper in the kernel failed (${name}): ${reason}`, {
    remedy: "Restart the executor; see that the kernel's temporary directory can be written to.",
  });
}

function reportOf(value: unknown): HelperReport {
  return {
    workspace: textField(value, "workspace"),
    functions: textField(value, "functions"),
    shells: texts(field(value, "shells")),
  };
}
