import { CurrentPlace } from "../../current-place.ts";
import { DisplayBoard } from "../../displays/display-board.ts";
import type { Backend, Opening, PlaceEnd } from "../../place.ts";
import type { SupervisedPlace } from "../supervised-place.ts";
import { InterpreterPlace, type InterpreterSettings } from "./interpreter-place.ts";
import type { Interpreter } from "./interpreters.ts";

/** Settings of a stateful session. */
export interface StatefulOptions extends Pick<InterpreterSettings, "functionsModule" | "hasFunctions"> {
  /** Where displays are saved. Default: a temporary directory. */
  readonly outputDir: string | undefined;
  /** A directory of this host that the code can change. */
  readonly bound: string | readonly string[] | undefined;
}

/** An interpreter, and the place in which it runs. */
interface Opened {
  readonly below: SupervisedPlace;
  readonly interpreter: Interpreter;
  /** See `PlaceFacts`. */
  readonly lostState?: string;
}

interface BackendParts {
  readonly settings: InterpreterSettings;
  /** Replaces a lost place; a fork shares it with its original, to which it belongs. */
  readonly below: CurrentPlace<SupervisedPlace>;
  /** The interpreter of a fork; a new one if it is opened again. */
  readonly first?: Opened;
}

const hadEnded = "The Python session had ended before this program connected; its variables are gone.";

/** Starts an interpreter that lives from block to block in a place that another backend opens. */
export class StatefulBackend implements Backend<InterpreterPlace> {
  readonly #options: StatefulOptions;
  readonly #settings: InterpreterSettings;
  readonly #below: CurrentPlace<SupervisedPlace>;
  #first: Opened | undefined;
  #hasOpened = false;

  private constructor(options: StatefulOptions, { settings, below, first }: BackendParts) {
    this.#options = options;
    this.#settings = settings;
    this.#below = below;
    this.#first = first;
  }

  /** @param places - opens the places for interpreters; closed with this backend, or if this rejects. */
  static async open(places: Backend<SupervisedPlace>, options: StatefulOptions): Promise<StatefulBackend> {
    // What is lost with the place is lost with its interpreter, which says so.
    const below = new CurrentPlace(places, () => {});
    try {
      return new StatefulBackend(options, { settings: await settingsOf(options, { isFork: false, blocks: 0 }), below });
    } catch (error) {
      await below.close();
      throw error;
    }
  }

  async open({ signal, isRestart }: Opening): Promise<InterpreterPlace> {
    const { below, interpreter, lostState } = this.#takeFirst() ?? (await this.#start(signal, isRestart));
    this.#hasOpened = true;
    return new InterpreterPlace(below, interpreter, this.#settings, lostState);
  }

  async close({ isDetached = false }: Partial<PlaceEnd> = {}): Promise<void> {
    try {
      await this.#settings.displays.close();
    } finally {
      await this.#takeFirst()?.interpreter.end();
      // What could not be connected to goes on.
      const goesOn = isDetached || (!this.#hasOpened && this.#below.last?.facts.isLeft === true);
      if (!this.#settings.isFork) await this.#below.close(goesOn);
    }
  }

  /**
   * Forks an interpreter between two blocks: the fork has the same variables, in the same place.
   *
   * @throws BackendUnavailableError if that fails; `signal.reason` if it is aborted first.
   */
  async fork({ below, interpreter }: InterpreterPlace, signal: AbortSignal): Promise<StatefulBackend> {
    const { blocks } = this.#settings;
    const settings = await settingsOf(this.#options, { isFork: true, blocks });
    try {
      const forked = await below.interpreters().supervisor.forkInterpreter(interpreter, signal);
      const first = { below, interpreter: forked };
      return new StatefulBackend(this.#options, { settings, below: this.#below, first });
    } catch (error) {
      await settings.displays.close();
      throw error;
    }
  }

  /** Returns one without variables in the same place, for a fork that starts again. */
  async beside(): Promise<StatefulBackend> {
    const settings = await settingsOf(this.#options, { isFork: true, blocks: 0 });
    return new StatefulBackend(this.#options, { settings, below: this.#below });
  }

  #takeFirst(): Opened | undefined {
    const first = this.#first;
    this.#first = undefined;
    return first;
  }

  async #start(signal: AbortSignal, isRestart: boolean): Promise<Opened> {
    if (isRestart && !this.#settings.isFork) await this.#below.reset(signal);
    const below = await this.#below.ready(signal);
    const { supervisor, program } = below.interpreters();
    const left = isRestart ? undefined : supervisor.takeInterpreter();
    if (left) return { below, interpreter: left };
    const interpreter = await supervisor.openInterpreter({ ...program, isCopy: this.#settings.isFork }, signal);
    return { below, interpreter, ...(below.facts.isLeft === true && !isRestart && { lostState: hadEnded }) };
  }
}

async function settingsOf(
  { outputDir, bound, functionsModule, hasFunctions }: StatefulOptions,
  own: Pick<InterpreterSettings, "isFork" | "blocks">,
): Promise<InterpreterSettings> {
  return { displays: await DisplayBoard.open(outputDir, bound), functionsModule, hasFunctions, ...own };
}
