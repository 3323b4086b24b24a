import {
  canonicalLanguage,
  type CodeExecutor,
  ComponentError,
  type ComponentModel,
  type ExecutorCapabilities,
  type FunctionWithRequirements,
  InvalidInputError,
} from "@fenced/core";
import { checkOptions, optionsSchema, type OptionSchemas, signalOption } from "@fenced/core/options";
import * as z from "zod";
import { BaseCodeExecutor, type SharedParts } from "./base-code-executor.ts";
import type { BaseExecutorOptions, CommandLineExecutorOptions } from "./base-executor-options.ts";
import type { LanguageCommand } from "./languages/command-languages.ts";
import type { Backend, Place } from "./place.ts";
import { InterpreterPlace } from "./supervisor/interpreters/interpreter-place.ts";
import { StatefulBackend } from "./supervisor/interpreters/stateful-backend.ts";
import type { SupervisedBackend } from "./supervisor/supervised-backend.ts";

/** Options of `fork()`. */
export interface ForkOptions {
  /** Cancels the fork and undoes it. */
  readonly signal?: AbortSignal | undefined;
}

const forkOptions: z.ZodType<ForkOptions> = optionsSchema({
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<ForkOptions>);

/** Options of executors whose Python blocks can share one interpreter. */
export interface StatefulExecutorOptions {
  /**
   * Run Python blocks in one interpreter, so that variables persist between blocks and the value of the last expression
   * is shown; `fork()` then creates a second executor with the same variables. Calls run one after another. Blocks in
   * other languages still run in their own processes. Default: false.
   */
  readonly stateful?: boolean | undefined;
  /**
   * The directory on this host in which a stateful session saves rich outputs as files. Only with `stateful: true`.
   * Default: a temporary directory that `stop()` deletes.
   */
  readonly outputDir?: string | undefined;
}

/** The schemas of these options. */
export const statefulOptions: OptionSchemas<StatefulExecutorOptions> = {
  stateful: z.boolean().exactOptional(),
  outputDir: z.string().min(1).exactOptional(),
};

/** Rejects an option that would be ignored. */
export function checkStateful({ value, issues }: z.core.ParsePayload<StatefulExecutorOptions>): void {
  if (value.outputDir === undefined || value.stateful === true) return;
  const message = "needs `stateful: true`: only a stateful session shows rich outputs";
  issues.push({ code: "custom", path: ["outputDir"], input: value.outputDir, message });
}

/** What the backend of a command-line executor needs to know of its executor. */
export interface CommandLineRequest<Options> {
  readonly options: Options;
  /** The executor's id. */
  readonly id: string;
  readonly functions: readonly FunctionWithRequirements[];
  readonly functionsModule: string;
  readonly table: Readonly<Record<string, LanguageCommand>>;
  /** Languages with a command from the user. */
  readonly givenLanguages: ReadonlySet<string>;
}

/** An executor that can be forked, if its backend is a `StatefulBackend`. */
export abstract class ForkableCodeExecutor<P extends Place = Place> extends BaseCodeExecutor<P> {
  /** The backend, if it is stateful; set it when it has been opened. */
  protected stateful: StatefulBackend | undefined;
  readonly #options: BaseExecutorOptions;

  /** @throws InvalidInputError if an option common to all executors is wrong. */
  constructor(options: BaseExecutorOptions, shared?: SharedParts, id?: string) {
    super(options, shared, id);
    this.#options = options;
  }

  /**
   * Returns what the backend needs to know.
   *
   * @param table - the command for each language, including those in `options`.
   */
  protected request<Options extends Pick<CommandLineExecutorOptions, "languages">>(
    options: Options,
    table: Readonly<Record<string, LanguageCommand>>,
  ): CommandLineRequest<Options> {
    return {
      options,
      id: this.id,
      functions: this.functions,
      functionsModule: this.functionsModule,
      table,
      givenLanguages: new Set(Object.keys(options.languages ?? {}).map(canonicalLanguage)),
    };
  }

  /**
   * Runs Python blocks in an interpreter that lives on, in the places of a backend.
   *
   * @param places - `outputDir`: where rich outputs are saved; `bound`: directories of this host that the code can
   *   change.
   */
  protected async makeStateful(
    backend: SupervisedBackend,
    places: { readonly outputDir: string | undefined; readonly bound: string | readonly string[] | undefined },
  ): Promise<StatefulBackend> {
    const { functionsModule } = this;
    const options = { ...places, functionsModule, hasFunctions: this.functions.length > 0 };
    this.stateful = await StatefulBackend.open(backend, options);
    return this.stateful;
  }

  /**
   * Forks the Python session between two calls: resolves to a started executor with the same variables. Neither
   * executor affects the other's variables. A fork takes milliseconds, and copies only memory that one of them changes.
   * Threads are not copied.
   *
   * Both run in the same place, with the same files, limits and network. The fork has its own calls and its own
   * `restart()`; its `stop()` ends only its Python session. Dispose of it when you are done. When the original is
   * restarted, the fork loses its variables; when the original is stopped, the fork's calls reject.
   *
   * @throws InvalidInputError if the executor is not stateful, or an option is unknown or wrong.
   * @throws ExecutorStoppedError if it has been stopped, or is stopped or restarted during the fork.
   * @throws BackendUnavailableError if the session could not be forked, for example because of a limit on processes.
   * @throws `options.signal.reason` if the signal was aborted.
   */
  async fork(options: ForkOptions = {}): Promise<ForkedExecutor> {
    const { signal } = checkOptions(forkOptions, options, "fork");
    if (!this.offered.stateful) {
      throw new InvalidInputError("Only a stateful executor can be forked", { remedy: "Set `stateful: true`." });
    }
    return this.inTurn(signal, async (place, limit) => {
      const backend = this.stateful;
      if (!backend || !(place instanceof InterpreterPlace)) throw new Error("the backend is not a StatefulBackend");
      const { capabilities, shared } = this;
      const forked = await backend.fork(place, limit);
      return ForkedExecutor.open({ options: this.#options, shared, capabilities, backend: forked });
    });
  }
}

/** What a fork gets from its original. */
interface ForkOrigin {
  readonly options: BaseExecutorOptions;
  readonly shared: SharedParts;
  readonly capabilities: ExecutorCapabilities;
  readonly backend: StatefulBackend;
}

/** An executor that starts with a copy of another executor's variables, in the same place; created by `fork()`. */
export class ForkedExecutor extends ForkableCodeExecutor<InterpreterPlace> implements CodeExecutor {
  protected readonly offered: ExecutorCapabilities;
  readonly #backend: StatefulBackend;
  #isFirst = true;

  private constructor({ options, shared, capabilities, backend }: ForkOrigin) {
    super(options, shared);
    this.offered = capabilities;
    this.#backend = backend;
  }

  /** @internal */
  static async open(origin: ForkOrigin): Promise<ForkedExecutor> {
    const fork = new ForkedExecutor(origin);
    await fork.start();
    return fork;
  }

  /** @throws ComponentError always: it has no settings of its own. */
  dumpComponent(): ComponentModel {
    throw new ComponentError("A fork has no settings of its own", {
      remedy: "Dump the executor that it was forked from.",
    });
  }

  /** Returns the fork at first; after a stop, one without variables in the same place. */
  protected override async openBackend(): Promise<Backend<InterpreterPlace>> {
    this.stateful = this.#isFirst ? this.#backend : await this.#backend.beside();
    this.#isFirst = false;
    return this.stateful;
  }
}
