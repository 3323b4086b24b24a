import type { Duplex } from "node:stream";
import {
  type ConnectedProcess,
  type ExecutorProcesses,
  InvalidInputError,
  type ListedProcess,
  type ProcessOptions,
  type RunningProcess,
  type TerminalProcess,
  type TerminalSize,
  type WritableProcess,
} from "@fenced/core";
import { followSignals, untilAborted } from "@fenced/core/abort";
import { checkOptions } from "@fenced/core/options";
import { type Place, PlaceGone, placeLost } from "../place.ts";
import type { BlockOutcome, LeftProgram, ProgramRun } from "../run/block-run.ts";
import type { Sink } from "../run/sink.ts";
import type { Epoch, SessionLife } from "../session-life.ts";
import { KnownProcesses } from "./known-processes.ts";
import { describedProcess, labelOf, portNumber, processOptions, readLabel } from "./process-options.ts";
import { ProgramAddresses } from "./program-addresses.ts";
import { StartedProcess } from "./started-process.ts";

const shell = "/bin/sh";
/** Starts a program in a directory. As with `env --chdir`, exit code 125 means that the directory is missing. */
const launcher = 'cd -- "$1" || exit 125\nshift\nexec "$@"';
/** The same with one output. */
const mergedLauncher = `exec 2>&1\n${launcher}`;
const noPorts: ReadonlyMap<number, number> = new Map();
/** What a program sees of its terminal, unless it is told otherwise. */
const terminalType = "xterm-256color";

/** Runs something in a place within the limits of the session. */
export type GuardPrograms<P> = (
  place: P,
  sink: Sink,
  run: (sink: Sink) => Promise<BlockOutcome>,
) => Promise<BlockOutcome>;

/** What programs have from their executor. */
interface ProgramSurroundings<P> {
  /** The executor's environment variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly guard: GuardPrograms<P>;
}

/** Programs that run alongside an executor's blocks, in the place that is open when they are started. */
export class SessionProcesses<P extends Place> implements ExecutorProcesses {
  readonly #life: SessionLife<P>;
  readonly #surroundings: ProgramSurroundings<P>;
  readonly #known = new KnownProcesses();
  readonly #addresses: ProgramAddresses;
  /** The place whose earlier programs are known, or are asked for. */
  #asked: { readonly place: P; readonly done: Promise<void> } | undefined;

  constructor(life: SessionLife<P>, surroundings: ProgramSurroundings<P>) {
    this.#life = life;
    this.#surroundings = surroundings;
    this.#addresses = new ProgramAddresses((port) => life.place?.connectPort?.(port));
  }

  get ports(): ReadonlyMap<number, number> {
    return this.#life.place?.facts.ports ?? noPorts;
  }

  start(options: ProcessOptions & { readonly pty: TerminalSize }): Promise<TerminalProcess>;
  start(options: ProcessOptions & { readonly stdin: true }): Promise<WritableProcess>;
  start(options: ProcessOptions): Promise<RunningProcess>;
  async start(options: ProcessOptions): Promise<RunningProcess> {
    const checked = checkOptions(processOptions, options, "processes.start");
    const { signal: given, pty, timeoutMs } = checked;
    if (pty && checked.stdin !== undefined && checked.stdin !== true) throw noSecondInput();
    given?.throwIfAborted();
    const epoch = this.#life.open();
    const rejecting = new AbortController();
    const { signal } = rejecting;
    const unfollow = followSignals(rejecting, [epoch.signal, given]);
    try {
      const place = epoch.usablePlace ?? (await epoch.place(signal));
      if (pty && place.facts.capabilities?.terminals !== true) throw noTerminals();
      const description = describedProcess(checked);
      const input = typeof checked.stdin === "boolean" ? undefined : checked.stdin;
      const program = { argv: argvOf(checked), env: this.#variables(checked), label: labelOf(description) };
      const process = new StartedProcess(
        (sink, { stdin = input, started }) =>
          this.#run({ epoch, place, sink }, (guarded) =>
            runProgram(
              place,
              { ...program, ...(stdin !== undefined && { stdin }), ...(pty && { pty }), started },
              guarded,
            ),
          ),
        { signal, takesInput: pty !== undefined || checked.stdin === true, timeoutMs, hasTerminal: pty !== undefined },
      );
      epoch.begin(process.ended);
      void process.ended.then(unfollow);
      await untilAborted(process.begun, signal);
      this.#known.add(process, description);
      return process.takeOwner();
    } catch (error) {
      unfollow();
      throw error;
    }
  }

  async list(): Promise<readonly ListedProcess[]> {
    await this.#askForEarlier();
    return this.#known.running();
  }

  async connect(pid: number): Promise<ConnectedProcess> {
    await this.#askForEarlier();
    const process = this.#known.find(pid);
    if (process) return process.open();
    throw new InvalidInputError(`No program that was started with processes.start() has the process id ${pid}`, {
      remedy: "processes.list() lists those that are running; others may have ended more than a minute ago.",
    });
  }

  async address(port: number): Promise<string> {
    checkOptions(portNumber, { port }, "processes.address");
    const { signal } = this.#life;
    await this.#reachablePlace();
    return this.#addresses.of(port, signal);
  }

  async openPort(port: number): Promise<Duplex> {
    checkOptions(portNumber, { port }, "processes.openPort");
    const place = await this.#reachablePlace();
    return place.connectPort(port);
  }

  /** @throws InvalidInputError if ports of programs cannot be reached. */
  async #reachablePlace(): Promise<ReachablePlace> {
    const epoch = this.#life.open();
    const place = epoch.usablePlace ?? (await epoch.place(epoch.signal));
    if (place.facts.capabilities?.addresses === true && isReachable(place)) return place;
    throw new InvalidInputError("Ports of programs cannot be reached from this host here", {
      remedy:
        "Use an executor whose `capabilities.addresses` is true: it needs Python 3.8 or later where the programs run.",
    });
  }

  /** Learns of the programs that earlier programs using the place have started. */
  async #askForEarlier(): Promise<void> {
    this.#life.signal.throwIfAborted();
    if (this.#life.place?.leftPrograms === undefined) return;
    const epoch = this.#life.open();
    const place = epoch.usablePlace ?? (await epoch.place(epoch.signal));
    if (this.#asked?.place !== place) {
      const done = this.#adopt(epoch, place);
      const asked = { place, done };
      this.#asked = asked;
      done.catch(() => {
        if (this.#asked === asked) this.#asked = undefined;
      });
    }
    await untilAborted(this.#asked.done, epoch.signal);
  }

  async #adopt(epoch: Epoch<P>, place: P): Promise<void> {
    for (const left of (await place.leftPrograms?.()) ?? []) {
      const description = readLabel(left.label);
      if (!description) continue;
      const process = new StartedProcess(
        (sink, { stdin, started }) => {
          started(left.controls);
          return this.#run({ epoch, place, sink }, (guarded) => follow(left, guarded, stdin));
        },
        { signal: epoch.signal, takesInput: left.takesInput, hasTerminal: left.hasTerminal, isLeft: true },
      );
      epoch.begin(process.ended);
      this.#known.add(process, description);
    }
  }

  async #run(
    { epoch, place, sink }: { readonly epoch: Epoch<P>; readonly place: P; readonly sink: Sink },
    run: (sink: Sink) => Promise<BlockOutcome>,
  ): Promise<BlockOutcome> {
    try {
      return await this.#surroundings.guard(place, sink, run);
    } catch (error) {
      if (!(error instanceof PlaceGone)) throw error;
      epoch.giveUp(place, error.message);
      throw placeLost(error);
    }
  }

  #variables({ env, pty }: ProcessOptions): Readonly<Record<string, string>> {
    return { ...(pty && { TERM: terminalType }), ...this.#surroundings.env, ...env };
  }
}

type ReachablePlace = Place & Required<Pick<Place, "connectPort">>;

function isReachable(place: Place): place is ReachablePlace {
  return place.connectPort !== undefined;
}

async function follow(
  left: LeftProgram,
  sink: Sink,
  stdin: AsyncIterable<Uint8Array> | undefined,
): Promise<BlockOutcome> {
  return left.exitCode === undefined ? left.follow(sink, stdin) : { exitCode: left.exitCode };
}

/** @throws InvalidInputError if the place cannot run programs. */
async function runProgram(place: Place, program: ProgramRun, sink: Sink): Promise<BlockOutcome> {
  if (place.runProgram) return place.runProgram(program, sink);
  throw new InvalidInputError("Programs cannot be started alongside blocks here", {
    remedy: "Run them as blocks, or use an executor whose `capabilities.processes` is true.",
  });
}

function argvOf({ command: given, cwd = ".", merged = false }: ProcessOptions): [string, ...string[]] {
  const directory = cwd.startsWith("/") ? cwd : `./${cwd}`;
  const words = typeof given === "string" ? [shell, "-c", given] : given;
  return [shell, "-c", merged ? mergedLauncher : launcher, "fenced", directory, ...words];
}

function noTerminals(): InvalidInputError {
  return new InvalidInputError("Programs cannot run on a terminal here", {
    remedy:
      "Leave out `pty`, or use an executor whose `capabilities.terminals` is true: it needs Python 3.8 or later where the program runs.",
  });
}

function noSecondInput(): InvalidInputError {
  return new InvalidInputError("A program on a terminal has no other input", {
    remedy: "Leave out `stdin`, and write to that of the handle.",
  });
}
