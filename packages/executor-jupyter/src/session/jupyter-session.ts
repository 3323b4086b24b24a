import type { Duplex } from "node:stream";
import { BackendUnavailableError, FunctionSetupError, InvalidInputError } from "@fenced/core";
import { untilAborted, within } from "@fenced/core/abort";
import {
  type BackendFiles,
  blockSource,
  timeIsUp,
  type BackendSession,
  type BlockOutcome,
  type BlockRun,
  type FunctionPlaces,
  type PlaceFacts,
  type Sink,
} from "@fenced/executor-kit";
import { CallBridge } from "../kernel/call-bridge.ts";
import { KernelLostError } from "../kernel/kernel-request.ts";
import { KernelSlot, type SlotKernel } from "./kernel-slot.ts";
import { runCell } from "./run-cell.ts";
import type { SessionSettings } from "./session-settings.ts";

/** What a block has in addition to its session: variables and host functions. */
interface BlockPlaces {
  readonly env: Readonly<Record<string, string>> | undefined;
  readonly calls: { readonly modules: string; readonly commands: string; readonly names: readonly string[] } | null;
}

/** A started executor's kernel, and how blocks run in it. */
export class JupyterSession implements BackendSession {
  readonly #settings: SessionSettings;
  readonly #slot: KernelSlot;
  /** The kernel in which the functions are already defined as variables. */
  #offered: SlotKernel | undefined;
  /** How programs reach host functions, and the kernel that this was set up for. */
  #calls: { readonly bridge: CallBridge; readonly address: string } | undefined;
  readonly #closing = new AbortController();

  private constructor(settings: SessionSettings, slot: KernelSlot) {
    this.#settings = settings;
    this.#slot = slot;
  }

  /** Acquires the server and starts the first kernel. */
  static async open(settings: SessionSettings, signal: AbortSignal): Promise<JupyterSession> {
    return new JupyterSession(settings, await KernelSlot.open(settings, signal));
  }

  get facts(): PlaceFacts {
    return this.#slot.facts;
  }

  get files(): BackendFiles {
    return this.#slot.files;
  }

  functionPlaces(): Omit<FunctionPlaces, "owner"> {
    const { functions = "", commands = "" } = this.#slot.latest?.report ?? {};
    return functions === "" ? {} : { python: functions, commands };
  }

  async openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    const { signal } = this.#closing;
    const live = await this.#slot.kernel(signal);
    if (live.report?.calls !== true) {
      throw new FunctionSetupError("Code in this kernel cannot call host functions", {
        remedy: "Leave them out, or use a Python kernel with ipykernel 6 or later.",
      });
    }
    if (this.#calls && this.#canCallFrom(live)) return this.#calls.address;
    const bridge =
      this.#calls?.bridge.kernel === live.kernel ? this.#calls.bridge : new CallBridge(live.kernel, accept);
    const address = await bridge.open(signal);
    this.#calls = { bridge, address };
    return address;
  }

  /** A replacement kernel cannot reach host functions yet. */
  repair(signal: AbortSignal): Promise<void> | undefined {
    return this.#calls && this.#repairCalls(signal);
  }

  async #repairCalls(signal: AbortSignal): Promise<void> {
    if (!this.#canCallFrom(await this.#slot.kernel(signal))) this.#settings.onReplaced();
  }

  #canCallFrom({ kernel }: SlotKernel): boolean {
    return this.#calls?.bridge.kernel === kernel && this.#calls.bridge.isOpen;
  }

  async run(run: BlockRun, sink: Sink): Promise<BlockOutcome> {
    const slot = this.#slot;
    const { signal } = sink;
    const live = await this.#kernel(signal);
    if (!live || signal.aborted) return { exitCode: 1 };
    if (run.hostCalls && this.#calls?.bridge.kernel !== live.kernel) {
      // It was replaced after the call began, so the block would not find its functions.
      const message = "The kernel was replaced; host functions are available again in the next call.\n";
      void sink.write({ type: "stderr", data: message });
      return { exitCode: 1, stateLost: this.#takeStateLost(signal) };
    }
    const env = this.#newVariables(run, live);
    const calls = this.#callPlaces(run);
    const refusals = slot.collectRefusals();
    try {
      const prepared = await this.#answer(this.#prepare(live, run, { env, calls }), live, signal);
      if (!prepared) return { exitCode: 1, network: refusals(), stateLost: this.#takeStateLost(signal) };
      const outcome = await runCell(run, sink, { slot, live, interruptGraceMs: this.#settings.interruptGraceMs });
      return { ...outcome, network: refusals(), stateLost: this.#takeStateLost(signal) };
    } catch (error) {
      if (!(error instanceof KernelLostError)) throw error;
      return { ...(await this.#afterLoss(error, live, sink)), network: refusals() };
    } finally {
      refusals();
      if (env && live.helper && !live.kernel.end) {
        await this.#answer(live.helper.ask("pop_env", { calls }), live, signal).catch(() => {});
      }
    }
  }

  /** Gives the kernel what it needs before the cell runs. */
  async #prepare(live: SlotKernel, run: BlockRun, places: BlockPlaces): Promise<void> {
    if (run.filename !== undefined) await this.#slot.files.write(run.filename, blockSource(run.language, run.code));
    await this.#offerFunctions(live);
    if (places.env) await live.helper?.ask("push_env", places);
  }

  /** Where this block finds host functions; `null` if it has none. */
  #callPlaces({ hostCalls }: BlockRun): BlockPlaces["calls"] {
    const { python, commands } = this.functionPlaces();
    if (!hostCalls || python === undefined || commands === undefined) return null;
    const { functionsModule } = this.#settings;
    const modules = hostCalls.variant === undefined ? python : `${python}/${hostCalls.variant}`;
    return { modules, commands, names: [functionsModule, `_${functionsModule}_host`] };
  }

  /** The variables that this block has in addition to the session's; `undefined` if there are none. */
  #newVariables({ env }: BlockRun, { kernel, helper }: SlotKernel): Readonly<Record<string, string>> | undefined {
    if (!helper && Object.keys(env).length > 0) {
      throw new InvalidInputError(`The ${kernel.language} kernel does not accept environment variables`, {
        remedy: "Leave `env` out, or set them in the block.",
      });
    }
    const own = Object.entries(env).filter(([name, value]) => this.#settings.ownEnv[name] !== value);
    return own.length > 0 ? Object.fromEntries(own) : undefined;
  }

  /**
   * Waits for an answer from the kernel until the block must end, plus a grace period. A kernel that does not answer,
   * for example because code has stopped it, is replaced.
   *
   * @returns whether it answered.
   * @throws whatever the answer rejects with.
   */
  async #answer(answer: Promise<unknown>, live: SlotKernel, signal: AbortSignal): Promise<boolean> {
    const settled = answer.then(
      () => true,
      () => true,
    );
    await untilAborted(settled, signal).catch(() => {});
    if ((await within(this.#settings.interruptGraceMs, settled)) === true) return answer.then(() => true);
    await this.#slot.discard(live, false);
    return false;
  }

  /** Whether variables were lost. Nobody sees the result of an aborted block, so the next block has to report it. */
  #takeStateLost(signal: AbortSignal): boolean {
    return (!signal.aborted || signal.reason === timeIsUp) && this.#slot.takeStateLost();
  }

  /** The block could not finish: the next one gets a new kernel. */
  async #afterLoss({ end }: KernelLostError, live: SlotKernel, sink: Sink): Promise<BlockOutcome> {
    const memory = await this.#slot.outOfMemory();
    await this.#slot.discard(live);
    if (memory === undefined && end.kind === "unreachable") {
      throw new BackendUnavailableError(`It is unknown how the block ended: ${end.reason}`, {
        remedy:
          "Make sure that the server is running; the next call starts a new kernel, without the variables of this one.",
      });
    }
    void sink.write({
      type: "stderr",
      data: `The block did not finish: ${memory ?? end.reason}. Variables are lost.\n`,
    });
    return { exitCode: 1, stateLost: this.#slot.takeStateLost() };
  }

  /** `undefined` if the run was aborted first. */
  async #kernel(signal: AbortSignal): Promise<SlotKernel | undefined> {
    try {
      return await this.#slot.kernel(signal);
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    }
  }

  /** Also defines the functions that were set up as variables, in every kernel of the session. */
  async #offerFunctions(live: SlotKernel): Promise<void> {
    if (this.#settings.functions.length === 0 || this.#offered === live || !live.helper) return;
    const names = this.#settings.functions.map((each) => each.name);
    const offered = await live.helper.ask("offer", { module: this.#settings.functionsModule, names });
    if (offered !== true) return;
    this.#offered = live;
    this.#slot.functionsLoaded = true;
  }

  async reset(signal: AbortSignal): Promise<void> {
    this.#slot.functionsLoaded = false;
    this.#offered = this.#calls = undefined;
    await this.#slot.reset(signal);
  }

  close(): Promise<void> {
    this.#closing.abort(new Error("the session was closed"));
    return this.#slot.close();
  }
}
