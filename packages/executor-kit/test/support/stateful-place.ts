import type { MimeBundle } from "@fenced/core";
import { blockEnvironment } from "@fenced/executor-kit";
import { DisplayBoard } from "@fenced/executor-kit/displays";
import { StatefulPython } from "@fenced/executor-kit/supervisor";
import { onTestFinished } from "vitest";
import { openPythonPlace, type PythonPlace } from "./python-place.ts";
import { TextSink } from "./text-sink.ts";

/** The outcome of a block. */
export interface StatefulOutcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly displays: readonly MimeBundle[];
  readonly exitCode: number;
  readonly stateLost: boolean;
}

type Settings = ConstructorParameters<typeof StatefulPython>[0];

/** A Python session under the supervisor of one test. */
export class StatefulPlace {
  readonly place: PythonPlace;
  readonly losses: { readonly reason: string; readonly reported: boolean }[] = [];
  readonly settings: Settings;
  readonly python: StatefulPython;

  constructor(place: PythonPlace, displays: DisplayBoard) {
    this.place = place;
    const program = { command: [place.python], env: blockEnvironment, commands: "/nowhere", preload: ["decimal"] };
    this.settings = {
      place: () => Promise.resolve({ supervisor: place.supervisor, program }),
      displays,
      onLost: (reason, { reported }) => this.losses.push({ reason, reported }),
    };
    this.python = new StatefulPython(this.settings);
  }

  async run(code: string, { python = this.python, signal, ...more }: RunOptions = {}): Promise<StatefulOutcome> {
    const output = new TextSink(signal);
    const block = { code, env: { ...blockEnvironment, ...more.env }, modules: null };
    const stdin = more.stdin === undefined ? {} : { stdin: more.stdin };
    const { exitCode, stateLost = false } = await python.run({ ...block, ...stdin }, output);
    const { stdout, stderr, displays } = output;
    return { stdout, stderr, displays, exitCode, stateLost };
  }

  async fork(from: StatefulPython = this.python, signal = new AbortController().signal): Promise<StatefulPython> {
    return from.fork(this.settings, signal);
  }
}

interface RunOptions {
  readonly python?: StatefulPython;
  readonly signal?: AbortSignal;
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export async function openStatefulPlace(): Promise<StatefulPlace> {
  const place = await openPythonPlace();
  const displays = await DisplayBoard.open(undefined, undefined);
  onTestFinished(() => displays.close());
  return new StatefulPlace(place, displays);
}
