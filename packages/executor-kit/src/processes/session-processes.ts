import {
  InvalidInputError,
  type ExecutorProcesses,
  type ProcessOptions,
  type RunningProcess,
  type WritableProcess,
} from "@fenced/core";
import { followSignals } from "@fenced/core/abort";
import { checkOptions, environmentOption, type OptionSchemas, optionsSchema, signalOption } from "@fenced/core/options";
import * as z from "zod";
import { type Place, PlaceGone, placeLost } from "../place.ts";
import type { BlockOutcome, ProgramRun } from "../run/block-run.ts";
import type { Sink } from "../run/sink.ts";
import type { SessionLife } from "../session-life.ts";
import { StartedProcess, WritableStartedProcess } from "./started-process.ts";

const shell = "/bin/sh";
/** Starts a program in a directory. As with `env --chdir`, exit code 125 means that the directory is missing. */
const launcher = 'cd -- "$1" || exit 125\nshift\nexec "$@"';
const noPorts: ReadonlyMap<number, number> = new Map();

const word = z.string().regex(/^[^\0]*$/, "must not contain a NUL character");
const name = word.min(1, "must not be empty");
const command = z.union(
  [name, z.tuple([name], word).readonly()],
  'must be a command line, or an array of a program and its arguments, without NUL characters: ["ls", "-l"]',
);
const stdin = z.union(
  [z.string(), z.custom<Uint8Array>((value) => value instanceof Uint8Array), z.boolean()],
  "must be a string, a Uint8Array, or true to write it later",
);

const processOptions: z.ZodType<ProcessOptions> = optionsSchema({
  command,
  cwd: name.exactOptional(),
  env: environmentOption.exactOptional(),
  stdin: stdin.exactOptional(),
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<ProcessOptions>);

/** Runs a program in a place. */
export type RunProgram<P> = (place: P, program: ProgramRun, sink: Sink) => Promise<BlockOutcome>;

/** Programs that run alongside an executor's blocks, in the place that is open when they are started. */
export class SessionProcesses<P extends Place> implements ExecutorProcesses {
  readonly #life: SessionLife<P>;
  readonly #run: RunProgram<P>;

  constructor(life: SessionLife<P>, run: RunProgram<P>) {
    this.#life = life;
    this.#run = run;
  }

  get ports(): ReadonlyMap<number, number> {
    return this.#life.place?.facts.ports ?? noPorts;
  }

  start(options: ProcessOptions & { readonly stdin: true }): Promise<WritableProcess>;
  start(options: ProcessOptions): Promise<RunningProcess>;
  async start(options: ProcessOptions): Promise<RunningProcess> {
    const checked = checkOptions(processOptions, options, "processes.start");
    checked.signal?.throwIfAborted();
    const epoch = this.#life.open();
    const rejecting = new AbortController();
    const { signal } = rejecting;
    const unfollow = followSignals(rejecting, [epoch.signal, checked.signal]);
    try {
      const place = epoch.usablePlace ?? (await epoch.place(signal));
      const { env = {}, stdin: input } = checked;
      const run = async (sink: Sink, read?: ProgramRun["stdin"]): Promise<BlockOutcome> => {
        const program = { argv: argvOf(checked), env, ...(read === undefined ? {} : { stdin: read }) };
        try {
          return await this.#run(place, program, sink);
        } catch (error) {
          if (!(error instanceof PlaceGone)) throw error;
          epoch.giveUp(place, error.message);
          throw placeLost(error);
        }
      };
      const given = typeof input === "boolean" ? undefined : input;
      const process =
        input === true
          ? new WritableStartedProcess(run, signal)
          : new StartedProcess((sink) => run(sink, given), signal);
      epoch.begin(process.ended);
      void process.ended.then(unfollow);
      return process;
    } catch (error) {
      unfollow();
      throw error;
    }
  }
}

/** @throws InvalidInputError if the place cannot run programs. */
export async function runProgram(place: Place, program: ProgramRun, sink: Sink): Promise<BlockOutcome> {
  if (place.runProgram) return place.runProgram(program, sink);
  throw new InvalidInputError("Programs cannot be started alongside blocks here", {
    remedy: "Run them as blocks, or use an executor whose `capabilities.processes` is true.",
  });
}

function argvOf({ command: given, cwd = "." }: ProcessOptions): [string, ...string[]] {
  const directory = cwd.startsWith("/") ? cwd : `./${cwd}`;
  const words = typeof given === "string" ? [shell, "-c", given] : given;
  return [shell, "-c", launcher, "fenced", directory, ...words];
}
