import type { Duplex } from "node:stream";
import {
  BackendUnavailableError,
  canonicalLanguage,
  type ExecutorCapabilities,
  FunctionSetupError,
  InvalidInputError,
  type JsonObject,
} from "@fenced/core";
import { untilAborted, within } from "@fenced/core/abort";
import {
  type BackendFiles,
  type BlockOutcome,
  type BlockRun,
  blockSource,
  type FunctionPlaces,
  type Place,
  type PlaceEnd,
  type PlaceFacts,
  PlaceGone,
  type Sink,
  timeIsUp,
} from "@fenced/executor-kit";
import type { DisplayBoard } from "@fenced/executor-kit/displays";
import type { SessionLink } from "@fenced/executor-kit/supervisor";
import { CallBridge } from "../kernel/call-bridge.ts";
import { kernelLanguages } from "../kernel/kernel-languages.ts";
import { KernelLostError } from "../kernel/kernel-request.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { HelperReport, PythonHelper } from "../python/python-helper.ts";
import type { ServerLease } from "../servers/jupyter-server.ts";
import { runCell } from "./run-cell.ts";
import type { SessionSettings } from "./session-settings.ts";

/** A kernel, and how its files are reached. */
export interface LiveKernel {
  readonly kernel: Kernel;
  /** Set if it is a Python kernel, as is what the helper reported when it was installed. */
  readonly helper?: PythonHelper;
  readonly report?: HelperReport;
  readonly files: BackendFiles;
  /** See `PlaceFacts`. */
  readonly filesStay: boolean;
  /** As the kernel names it; `undefined` if it does not say. */
  readonly workspacePath: string | undefined;
  /** Set if the session outlives its program. */
  readonly kept?: KeptLife;
}

/** What a kernel that outlives its program has of an earlier program, and has lost. */
export type KernelPast = Pick<PlaceFacts, "isLeft" | "lostState">;

/** How a kernel lives on when its program is gone. */
interface KeptLife extends KernelPast {
  readonly link: SessionLink;
  /** What another program needs to connect. */
  readonly session: JsonObject;
}

/** How a kernel is left. */
export interface KernelLeft extends PlaceEnd {
  /** It may still answer. */
  readonly answers: boolean;
}

/** What a kernel's place gets from its backend. */
interface KernelSurroundings {
  readonly settings: SessionSettings;
  readonly displays: DisplayBoard;
  readonly lease: ServerLease;
  readonly leave: (live: LiveKernel, how: KernelLeft) => Promise<void>;
}

/** What a block has in addition to its session: variables and host functions. */
interface BlockPlaces {
  readonly env: Record<string, string> | undefined;
  readonly calls: { readonly modules: string; readonly commands: string; readonly names: readonly string[] } | null;
}

/** A kernel, and how blocks run in it. Lost with its variables. */
export class KernelPlace implements Place {
  readonly facts: PlaceFacts;
  readonly files: BackendFiles;
  readonly lost: Promise<Error>;
  readonly #live: LiveKernel;
  readonly #surroundings: KernelSurroundings;
  /** The functions are already defined as variables. */
  #areOffered = false;
  /** How programs reach host functions. */
  #bridge: CallBridge | undefined;
  #lose: (reason: Error) => void = () => {};
  #left: Promise<void> | undefined;
  #isDetached = false;

  constructor(live: LiveKernel, surroundings: KernelSurroundings) {
    const { kernel, report, files, filesStay, workspacePath, kept } = live;
    this.#live = live;
    this.#surroundings = surroundings;
    this.files = files;
    const offered = kernelLanguages(canonicalLanguage(kernel.language), report?.shells ?? []);
    const { systemKernel } = surroundings.lease;
    const capabilities = {
      ...offered,
      ...(report?.calls !== true && { hostFunctions: [] }),
      ...(systemKernel && { kernel: systemKernel }),
    };
    this.facts = { capabilities, workspacePath, filesStay, ...(kept && keptFacts(capabilities, kept)) };
    this.lost = new Promise((resolve) => {
      this.#lose = resolve;
    });
    kernel.whenEnded(({ reason, error }) => this.#lose(error ?? new Error(`The kernel is gone: ${reason}`)));
  }

  functionPlaces(): Omit<FunctionPlaces, "owner"> {
    const { functions = "", commands = "" } = this.#live.report ?? {};
    return functions === "" ? {} : { python: functions, commands };
  }

  async openHostCalls(accept: (connection: Duplex) => void): Promise<string> {
    const { kernel, report } = this.#live;
    if (report?.calls !== true) {
      throw new FunctionSetupError("Code in this kernel cannot call host functions", {
        remedy: "Leave them out, or use a Python kernel with ipykernel 6 or later.",
      });
    }
    if (kernel.end) throw new PlaceGone(`The kernel is gone: ${kernel.end.reason}`);
    this.#bridge ??= new CallBridge(kernel, accept);
    return this.#bridge.open();
  }

  async run(run: BlockRun, sink: Sink): Promise<BlockOutcome> {
    const { kernel, helper } = this.#live;
    const { signal } = sink;
    if (this.#isGone()) throw new PlaceGone(`The kernel is gone: ${kernel.end?.reason ?? "it was replaced"}`);
    if (signal.aborted) return { exitCode: 1 };
    const env = this.#newVariables(run);
    const calls = this.#callPlaces(run);
    const refusals = this.#surroundings.lease.collectRefusals?.() ?? (() => []);
    try {
      const prepared = await this.#answer(this.#prepare(run, { env, calls }), signal);
      if (!prepared) return { exitCode: 1, network: refusals(), stateLost: this.#isStateLost(signal) };
      const outcome = await runCell(run, sink, {
        live: this.#live,
        displays: this.#surroundings.displays.forBlock(),
        interruptGraceMs: this.#surroundings.settings.interruptGraceMs,
        discard: (answers) => this.#discard(answers),
      });
      return { ...outcome, network: refusals(), stateLost: this.#isStateLost(signal) };
    } catch (error) {
      if (!(error instanceof KernelLostError)) throw error;
      return { ...(await this.#afterLoss(error, sink)), network: refusals() };
    } finally {
      refusals();
      if (env && helper && !this.#isGone()) {
        await this.#answer(helper.ask("pop_env", { calls }), signal).catch(() => {});
      }
    }
  }

  stopping(isDetached: boolean): void {
    if (!isDetached) return;
    // What runs goes on; its callers learn that at once.
    this.#isDetached = true;
    this.#live.kernel.disconnect();
  }

  async end(end: PlaceEnd): Promise<void> {
    await (this.#left ??= this.#surroundings.leave(this.#live, { ...end, answers: true }));
  }

  /** Nothing more can run in the kernel. */
  #isGone(): boolean {
    return this.#live.kernel.end !== undefined || this.#left !== undefined;
  }

  /** Gives the kernel what it needs before the cell runs. */
  async #prepare(run: BlockRun, places: BlockPlaces): Promise<void> {
    if (run.filename !== undefined) await this.files.write(run.filename, blockSource(run.language, run.code));
    await this.#offerFunctions();
    // Code may have closed the socket; its next address may be another one.
    const closed = this.#closedBridge(run);
    if (closed && places.env) places.env["FENCED_HOST_CALLS"] = await closed.open();
    if (places.env) await this.#live.helper?.ask("push_env", places);
  }

  /** Where this block finds host functions; `null` if it has none. */
  #callPlaces({ hostCalls }: BlockRun): BlockPlaces["calls"] {
    const { python, commands } = this.functionPlaces();
    if (!hostCalls || python === undefined || commands === undefined) return null;
    const { functionsModule } = this.#surroundings.settings;
    const modules = hostCalls.variant === undefined ? python : `${python}/${hostCalls.variant}`;
    return { modules, commands, names: [functionsModule, `_${functionsModule}_host`] };
  }

  /** The variables that this block has in addition to the session's; `undefined` if there are none. */
  #newVariables(run: BlockRun): Record<string, string> | undefined {
    const { env } = run;
    const { kernel, helper } = this.#live;
    if (!helper && Object.keys(env).length > 0) {
      throw new InvalidInputError(`The ${kernel.language} kernel does not accept environment variables`, {
        remedy: "Leave `env` out, or set them in the block.",
      });
    }
    const own = Object.entries(env).filter(([name, value]) => this.#surroundings.settings.ownEnv[name] !== value);
    return own.length > 0 || this.#closedBridge(run) ? Object.fromEntries(own) : undefined;
  }

  /** The way to the host functions that the block needs, if it is closed. */
  #closedBridge({ hostCalls }: BlockRun): CallBridge | undefined {
    return hostCalls !== undefined && this.#bridge?.isOpen === false ? this.#bridge : undefined;
  }

  /**
   * Waits for an answer from the kernel until the block must end, plus a grace period. A kernel that does not answer,
   * for example because code has stopped it, is discarded.
   *
   * @returns whether it answered.
   * @throws whatever the answer rejects with.
   */
  async #answer(answer: Promise<unknown>, signal: AbortSignal): Promise<boolean> {
    const settled = answer.then(
      () => true,
      () => true,
    );
    await untilAborted(settled, signal).catch(() => {});
    const { interruptGraceMs } = this.#surroundings.settings;
    if ((await within(interruptGraceMs, settled)) === true) return answer.then(() => true);
    await this.#discard(false);
    return false;
  }

  /** The outcome of an aborted block is not reported. */
  #isStateLost({ aborted, reason }: AbortSignal): boolean {
    return this.#left !== undefined && (!aborted || reason === timeIsUp);
  }

  /** The block could not finish: the next one gets a new kernel. */
  async #afterLoss({ end }: KernelLostError, sink: Sink): Promise<BlockOutcome> {
    if (this.#isDetached) return { exitCode: 1 };
    if (end.error) throw end.error;
    const memory = await this.#surroundings.lease.outOfMemory?.();
    await this.#discard(true);
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
    return { exitCode: 1, stateLost: true };
  }

  /**
   * Discards the kernel, because its variables can no longer be relied on. Idempotent.
   *
   * @param answers - it may still answer; it is then asked to end what it has started.
   */
  #discard(answers: boolean): Promise<void> {
    if (this.#isDetached) return Promise.resolve();
    this.#lose(new Error("The kernel had to be replaced: it could not be interrupted"));
    return (this.#left ??= this.#endEverything(answers));
  }

  async #endEverything(answers: boolean): Promise<void> {
    const { kernel, helper } = this.#live;
    if (answers && !kernel.end) await helper?.demand("kill", { everything: true });
    await this.#surroundings.leave(this.#live, { isReplaced: true, answers: false });
  }

  /** Also defines the functions that were set up as variables. */
  async #offerFunctions(): Promise<void> {
    const { functions, functionsModule } = this.#surroundings.settings;
    const { helper } = this.#live;
    if (functions.length === 0 || this.#areOffered || !helper) return;
    const names = functions.map((each) => each.name);
    this.#areOffered = (await helper.ask("offer", { module: functionsModule, names })) === true;
  }
}

function keptFacts(capabilities: Partial<ExecutorCapabilities>, { link: _, ...kept }: KeptLife): PlaceFacts {
  return { ...kept, capabilities: { ...capabilities, keepAlive: true } };
}
