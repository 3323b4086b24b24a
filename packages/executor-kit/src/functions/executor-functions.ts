import {
  type ApproveHostCall,
  type ExecutorCapabilities,
  type FunctionPromptOptions,
  type FunctionWithRequirements,
  type HostFunction,
  InvalidInputError,
  isHostFunction,
} from "@fenced/core";
import { checkOptions, hostFunctionOption, optionsSchema, type OptionSchemas } from "@fenced/core/options";
import * as z from "zod";
import type { BlockCalls } from "../host-calls/block-calls.ts";
import {
  type AnsweredBlock,
  HostCalls,
  type HostChoice,
  type HostedBlock,
  nothingChosen,
  withMore,
} from "../host-calls/host-calls.ts";
import type { Place } from "../place.ts";
import type { BlockOutcome } from "../run/block-run.ts";
import type { ExecutorTelemetry } from "../telemetry/executor-telemetry.ts";
import { assertFunctionSet } from "./assert-function-set.ts";
import { formatFunctions } from "./format-functions.ts";
import { runSetup, type SetupConditions, setupPrograms } from "./function-setup.ts";

/** The functions of an executor. */
interface FunctionSettings {
  /** Functions of either kind. */
  readonly functions: readonly (FunctionWithRequirements | HostFunction)[];
  /** The module from which blocks import them. */
  readonly moduleName: string;
  readonly approve: ApproveHostCall | undefined;
  /** Maximum number of host function calls per block. */
  readonly maxCalls: number;
  readonly telemetry: ExecutorTelemetry;
  /** The executor's class, for messages. */
  readonly owner: string;
}

const promptOptions: z.ZodType<FunctionPromptOptions> = optionsSchema({
  functions: z.array(hostFunctionOption).exactOptional(),
} satisfies OptionSchemas<FunctionPromptOptions>);

/** How functions are set up. */
export interface SetupSettings extends Omit<SetupConditions, "languages"> {
  readonly capabilities: ExecutorCapabilities;
  /** Identifies the executor; globally unique. */
  readonly owner: string;
}

/** The functions that an executor offers: those whose source is copied to the code, and host functions. */
export class ExecutorFunctions {
  /** The functions whose source is copied to the code. */
  readonly travelling: readonly FunctionWithRequirements[];
  readonly #settings: FunctionSettings;
  readonly #own: readonly HostFunction[];
  /** Created for the first host function, since most executors have none. */
  #hostCalls: HostCalls | undefined;

  /**
   * @throws InvalidInputError if they cannot share a module, or if one needs approval and there is no
   * `approveHostCall`.
   */
  constructor(settings: FunctionSettings) {
    const { functions } = settings;
    this.#settings = settings;
    this.travelling = functions.flatMap((each) => (isHostFunction(each) ? [] : [each]));
    this.#own = functions.filter(isHostFunction);
    if (functions.length > 0) this.#assert(this.#own);
    this.#choose();
  }

  /**
   * The host functions of one call.
   *
   * @param more - functions that the call adds.
   * @throws InvalidInputError if the executor does not support host functions, or two functions have the same name.
   */
  choose(more: readonly HostFunction[] | undefined, { hostFunctions }: ExecutorCapabilities): HostChoice {
    if (more && more.length > 0) this.#assert(more);
    const chosen = this.#choose(more);
    if (chosen.functions.size > 0 && hostFunctions.length === 0) throw this.#noHostFunctions();
    return chosen;
  }

  /** Whether a call with these host functions has functions of any kind. */
  any(host: HostChoice): boolean {
    return this.travelling.length + host.functions.size > 0;
  }

  /** Describes the functions to a model, including those that calls will add. */
  format(
    template: string | undefined,
    options: FunctionPromptOptions | undefined,
    { hostFunctions }: ExecutorCapabilities,
  ): string {
    const { functions: more = [] } = checkOptions(promptOptions, options ?? {}, "formatFunctionsForPrompt");
    if (more.length > 0) this.#assert(more);
    const functions = [...withMore(this.#own, more).values()];
    return formatFunctions(this.travelling, this.#settings.moduleName, template, {
      functions,
      languages: hostFunctions,
    });
  }

  /** See `HostCalls`. */
  variables(token: string): Readonly<Record<string, string>> {
    return this.#host.variables(token);
  }

  /** See `HostCalls`. */
  answer(functions: ReadonlyMap<string, HostFunction>, block: AnsweredBlock): BlockCalls {
    return this.#host.answer(functions, block);
  }

  /** Runs a block to its end while its programs can call host functions. */
  run(
    host: HostChoice,
    block: HostedBlock,
    start: (env: Readonly<Record<string, string>>) => Promise<BlockOutcome>,
  ): Promise<BlockOutcome> {
    return this.#host.run(host, block, start);
  }

  /**
   * Creates the modules that blocks import in a place.
   *
   * @throws FunctionSetupError with the reason if that fails.
   */
  async setUp(host: HostChoice, where: Place, settings: SetupSettings): Promise<void> {
    const { capabilities, owner, signal, place } = settings;
    const { telemetry, moduleName } = this.#settings;
    await telemetry.watchLifeCycle("set_up_functions", async () => {
      if (host.functions.size > 0) await this.#connect(where);
      const places = { ...(await where.functionPlaces?.()), owner };
      const choice = {
        functions: this.travelling,
        hostFunctions: [...host.functions.values()],
        everyHostFunction: this.#hostCalls?.every ?? [],
        moduleName,
        variant: host.variant,
        languages: capabilities.languages,
      };
      for (const program of setupPrograms(choice, places)) {
        await runSetup(program, { place, languages: capabilities.functions, signal });
      }
    });
  }

  get #host(): HostCalls {
    const { approve, maxCalls, telemetry } = this.#settings;
    return (this.#hostCalls ??= new HostCalls({ functions: this.#own, approve, maxCalls, telemetry }));
  }

  #choose(more: readonly HostFunction[] = []): HostChoice {
    return this.#own.length + more.length === 0 ? nothingChosen : this.#host.choose(more);
  }

  async #connect(place: Place): Promise<void> {
    const open = place.openHostCalls?.bind(place);
    if (!open) throw this.#noHostFunctions();
    await this.#host.open(open);
  }

  /** Host functions go into the modules of both languages. */
  #assert(hostFunctions: readonly HostFunction[]): void {
    const inBoth = hostFunctions.flatMap(({ name }) => [
      { language: "python" as const, name },
      { language: "javascript" as const, name },
    ]);
    assertFunctionSet([...this.travelling, ...inBoth], this.#settings.moduleName);
  }

  #noHostFunctions(): InvalidInputError {
    return new InvalidInputError(`${this.#settings.owner} cannot run host functions`, {
      remedy:
        "Leave them out, or use an executor whose `capabilities.hostFunctions` is not empty, such as LocalCommandLineCodeExecutor or DockerCommandLineCodeExecutor.",
    });
  }
}
