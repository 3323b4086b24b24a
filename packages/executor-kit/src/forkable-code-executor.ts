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
import type { BackendSession } from "./backend-session.ts";
import { BaseCodeExecutor, type SharedParts } from "./base-code-executor.ts";
import type { BaseExecutorOptions, CommandLineExecutorOptions } from "./base-executor-options.ts";
import type { LanguageCommand } from "./languages/command-languages.ts";
import { type ForkEvents, StatefulSession } from "./supervisor/interpreters/stateful-session.ts";
import type { SupervisedSession } from "./supervisor/supervised-session.ts";

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

/** The settings for opening a session of a command-line executor. */
export interface CommandLineSessionRequest<Options> {
  readonly options: Options;
  /** The executor's id. */
  readonly id: string;
  readonly functions: readonly FunctionWithRequirements[];
  readonly functionsModule: string;
  readonly table: Readonly<Record<string, LanguageCommand>>;
  /** Languages with a command from the user. */
  readonly givenLanguages: ReadonlySet<string>;
  /** Called when the place broke down and was replaced; everything in it that is not kept elsewhere is gone. */
  readonly onReplaced: () => void;
  /** Called when the place can no longer be used; everything in it that is not kept elsewhere is gone. */
  readonly onLost: (reason: string) => void;
}

/** An executor that can be forked, if its session is a `StatefulSession`. */
export abstract class ForkableCodeExecutor<
  Session extends BackendSession = BackendSession,
> extends BaseCodeExecutor<Session> {
  readonly #options: BaseExecutorOptions;

  /** @throws InvalidInputError if an option common to all executors is wrong. */
  constructor(options: BaseExecutorOptions, shared?: SharedParts) {
    super(options, shared);
    this.#options = options;
  }

  /**
   * Returns the settings for opening a session.
   *
   * @param table - the command for each language, including those in `options`.
   */
  protected sessionRequest<Options extends Pick<CommandLineExecutorOptions, "languages">>(
    options: Options,
    table: Readonly<Record<string, LanguageCommand>>,
  ): CommandLineSessionRequest<Options> {
    return {
      options,
      id: this.id,
      functions: this.functions,
      functionsModule: this.functionsModule,
      table,
      givenLanguages: new Set(Object.keys(options.languages ?? {}).map(canonicalLanguage)),
      onReplaced: () => this.forgetFunctions(),
      onLost: (reason) => this.sessionLost(reason),
    };
  }

  /**
   * Makes a session stateful; call this right after it has been opened.
   *
   * @param places - `outputDir`: where rich outputs are saved; `bound`: directories of this host that the code can
   *   change.
   * @throws BackendUnavailableError if Python does not start there; the session is then closed.
   */
  protected makeStateful(
    session: SupervisedSession,
    places: { readonly outputDir: string | undefined; readonly bound: string | readonly string[] | undefined },
    signal: AbortSignal,
  ): Promise<StatefulSession> {
    const { functionsModule } = this;
    const onLost: ForkEvents["onLost"] = (reason, options) => this.sessionLost(reason, options);
    return StatefulSession.open(
      session,
      { ...places, functionsModule, hasFunctions: this.functions.length > 0, onLost },
      signal,
    );
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
    return this.inTurn(signal, async (session, limit) => {
      if (!(session instanceof StatefulSession)) throw new Error("a stateful executor must open a StatefulSession");
      const { capabilities, shared } = this;
      return ForkedExecutor.open({ options: this.#options, shared, capabilities, session }, limit);
    });
  }
}

/** What a fork gets from its original. */
interface ForkOrigin {
  readonly options: BaseExecutorOptions;
  readonly shared: SharedParts;
  readonly capabilities: ExecutorCapabilities;
  readonly session: StatefulSession;
}

/** An executor that starts with a copy of another executor's variables, in the same place; created by `fork()`. */
export class ForkedExecutor extends ForkableCodeExecutor<StatefulSession> implements CodeExecutor {
  protected readonly offered: ExecutorCapabilities;
  readonly #origin: ForkOrigin;
  #first: StatefulSession | undefined;

  private constructor(origin: ForkOrigin) {
    super(origin.options, origin.shared);
    this.#origin = origin;
    this.offered = origin.capabilities;
  }

  /** @internal */
  static async open(origin: ForkOrigin, signal: AbortSignal): Promise<ForkedExecutor> {
    const fork = new ForkedExecutor(origin);
    fork.#first = await origin.session.fork(fork.#events(), signal);
    await fork.start();
    return fork;
  }

  /** @throws ComponentError always: it has no settings of its own. */
  dumpComponent(): ComponentModel {
    throw new ComponentError("A fork has no settings of its own", {
      remedy: "Dump the executor that it was forked from.",
    });
  }

  /** Returns the fork at first; after a stop, opens a session without variables in the same place. */
  protected async openSession(signal: AbortSignal): Promise<StatefulSession> {
    const first = this.#first;
    this.#first = undefined;
    return first ?? this.#origin.session.openBeside(this.#events(), signal);
  }

  #events(): ForkEvents {
    return {
      onLost: (reason, options) => {
        // The place may have been replaced.
        this.forgetFunctions();
        this.sessionLost(reason, options);
      },
    };
  }
}
