import type { Duplex } from "node:stream";
import type { MimeBundle } from "@fenced/core";
import {
  blockEnvironment,
  type BlockOutcome,
  type BlockRun,
  CurrentPlace,
  PlaceGone,
  type Sink,
} from "@fenced/executor-kit";
import {
  type Connection,
  type InterpreterPlace,
  SentWorkspace,
  StatefulBackend,
  SupervisedBackend,
} from "@fenced/executor-kit/supervisor";
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

/** A session of Python, as an executor keeps it. */
class PythonSession {
  readonly backend: StatefulBackend;
  readonly current: CurrentPlace<InterpreterPlace>;

  constructor(backend: StatefulBackend, onLost: (reason: string) => void) {
    this.backend = backend;
    this.current = new CurrentPlace(backend, onLost);
  }

  async run(block: BlockRun, sink: Sink): Promise<BlockOutcome> {
    for (;;) {
      const place = await this.current.ready(sink.signal);
      try {
        return await place.run(block, sink);
      } catch (error) {
        if (!(error instanceof PlaceGone)) throw error;
        this.current.giveUp(place, error.message);
      }
    }
  }

  end(): Promise<void> {
    return this.current.close();
  }
}

/** A Python session under the supervisor of one test. */
export class StatefulPlace {
  readonly place: PythonPlace;
  readonly losses: string[] = [];
  readonly python: PythonSession;

  constructor(place: PythonPlace, backend: StatefulBackend) {
    this.place = place;
    this.python = new PythonSession(backend, (reason) => this.losses.push(reason));
  }

  async run(code: string, { python = this.python, signal, ...more }: RunOptions = {}): Promise<StatefulOutcome> {
    const output = new TextSink(signal);
    const block = { language: "python", code, env: { ...more.env }, timeoutMs: Infinity };
    const stdin = more.stdin === undefined ? {} : { stdin: more.stdin };
    const { exitCode, stateLost = false } = await python.run({ ...block, ...stdin }, output);
    const { stdout, stderr, displays } = output;
    return { stdout, stderr, displays, exitCode, stateLost };
  }

  async fork(from: PythonSession = this.python, signal = new AbortController().signal): Promise<PythonSession> {
    const place = await from.current.ready(signal);
    const fork = new PythonSession(await from.backend.fork(place, signal), (reason) => this.losses.push(reason));
    await fork.current.ready(signal);
    return fork;
  }
}

interface RunOptions {
  readonly python?: PythonSession;
  readonly signal?: AbortSignal;
  readonly stdin?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** @param relay - passes on what the supervisor sends. Default: at once. */
export async function openStatefulPlace(relay?: Duplex): Promise<StatefulPlace> {
  const place = await openPythonPlace(relay);
  const connection: Connection = {
    runner: place.supervisor,
    languages: { found: new Map([["python", { extension: "py", command: [place.python] }]]), missing: new Map() },
    workspace: new SentWorkspace({
      supervisor: place.supervisor,
      python: place.python,
      path: place.directory,
      filePrefix: ".test-",
      keepFiles: false,
      functionsModule: "functions",
      hasPackage: false,
    }),
    directory: "/nowhere",
    lost: new Promise(() => {}),
    end: () => Promise.resolve(),
  };
  const settings = {
    id: "test",
    env: blockEnvironment,
    functions: [],
    warm: { preload: ["decimal"] },
    stateful: true,
    keepFiles: false,
    installsApart: true,
    network: undefined,
    memorySentence: "",
  };
  const backend = new SupervisedBackend(settings, {
    connect: () => Promise.resolve(connection),
    close: () => Promise.resolve(),
  });
  const options = { outputDir: undefined, bound: undefined, functionsModule: "functions", hasFunctions: false };
  const opened = new StatefulPlace(place, await StatefulBackend.open(backend, options));
  onTestFinished(() => opened.python.end());
  return opened;
}
