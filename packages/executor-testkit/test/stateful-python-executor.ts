import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { dumpComponentConfig, type ComponentModel, type ExecutorCapabilities, type JsonObject } from "@fenced/core";
import {
  BaseCodeExecutor,
  blockEnvironment,
  DirectoryFiles,
  killProcesses,
  Leash,
  listProcesses,
  type Backend,
  type BaseExecutorOptions,
  type BlockOutcome,
  type BlockRun,
  type Place,
  type Sink,
} from "../../executor-kit/src/index.ts";

type Answer = { type: "stdout" | "stderr"; text: string } | { type: "end"; code: number };

interface Interpreter {
  readonly process: ChildProcess;
  readonly requests: Writable;
  readonly answers: AsyncIterator<string>;
}

/** The smallest executor that keeps state, for the suite's stateful cases: one Python process for all blocks. */
export class StatefulPythonExecutor extends BaseCodeExecutor {
  protected readonly offered: ExecutorCapabilities = {
    languages: ["python"],
    stateful: true,
    displays: false,
    functions: ["python"],
    hostFunctions: [],
    stdin: true,
    isolation: "none",
  };
  readonly #options: BaseExecutorOptions;

  constructor(options: BaseExecutorOptions = {}) {
    super(options);
    this.#options = options;
  }

  dumpComponent(): ComponentModel {
    const provider = "stateful-python:StatefulPythonExecutor";
    const config: JsonObject = dumpComponentConfig(provider, { ...this.#options });
    return { provider, componentType: "code_executor", version: 1, config };
  }

  protected openBackend(): Backend {
    return { open: () => StatefulPythonPlace.open(this.id), close: () => Promise.resolve() };
  }
}

class StatefulPythonPlace implements Place {
  readonly facts = {};
  readonly files: DirectoryFiles;
  readonly #id: string;
  readonly #directory: string;
  readonly #leash: Leash;
  #interpreter: Interpreter | undefined;
  #stateLost = false;

  private constructor(id: string, directory: string) {
    this.#id = id;
    this.#directory = directory;
    this.#leash = new Leash({ mark: this.#mark, remove: [directory] });
    this.files = new DirectoryFiles(join(directory, "workspace"), { isHidden: (path) => path.includes("__pycache__") });
  }

  static async open(id: string): Promise<StatefulPythonPlace> {
    const directory = await mkdtemp(join(tmpdir(), "stateful-python-"));
    await mkdir(join(directory, "workspace"));
    await mkdir(join(directory, "functions"));
    return new StatefulPythonPlace(id, directory);
  }

  async end(): Promise<void> {
    await this.reset();
    await this.#leash.release();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async reset(): Promise<void> {
    this.#interpreter = undefined;
    this.#stateLost = false;
    await killProcesses({ mark: this.#mark });
  }

  functionPlaces() {
    return { python: join(this.#directory, "functions") };
  }

  async run(run: BlockRun, sink: Sink): Promise<BlockOutcome> {
    const { signal } = sink;
    if (run.filename !== undefined) await this.files.write(run.filename, run.code);
    const block = { name: "STATEFUL_BLOCK", value: randomUUID() };
    const interpreter = (this.#interpreter ??= this.#startInterpreter());
    const before = await childrenOf(interpreter);
    let killed: Promise<void> | undefined;
    const kill = () => {
      this.#interpreter = undefined;
      this.#stateLost = true;
      killed = killSince(interpreter, before, block);
    };
    signal.addEventListener("abort", kill, { once: true });
    if (signal.aborted) kill();
    const stateLost = this.#stateLost;
    this.#stateLost = false;
    const env = { ...this.#environment, ...run.env, [block.name]: block.value };
    interpreter.requests.write(`${JSON.stringify({ code: run.code, stdin: run.stdin ?? "", env })}\n`);
    try {
      for (;;) {
        const { value, done } = await interpreter.answers.next();
        if (done === true) break;
        const answer = JSON.parse(value) as Answer;
        if (answer.type === "end") return { exitCode: answer.code, stateLost };
        await sink.write({ type: answer.type, data: answer.text });
      }
      await killed;
      return { exitCode: 137, stateLost: true };
    } finally {
      signal.removeEventListener("abort", kill);
    }
  }

  get #mark() {
    return { name: "STATEFUL_SESSION", value: this.#id };
  }

  get #environment(): Record<string, string> {
    const { PATH = "", HOME = "" } = process.env;
    const functions = join(this.#directory, "functions");
    return { PATH, HOME, ...blockEnvironment, PYTHONPATH: functions, [this.#mark.name]: this.#mark.value };
  }

  #startInterpreter(): Interpreter {
    const script = join(import.meta.dirname, "fixtures/python-session.py");
    const child = spawn("python3", [script], {
      cwd: join(this.#directory, "workspace"),
      env: this.#environment,
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    });
    const requests = child.stdio[3] as Writable;
    requests.on("error", () => {});
    const lines = createInterface({ input: child.stdio[4] as Readable });
    return { process: child, requests, answers: lines[Symbol.asyncIterator]() };
  }
}

async function childrenOf({ process: { pid } }: Interpreter): Promise<number[]> {
  return (await listProcesses()).filter(({ parent }) => parent === pid).map((child) => child.pid);
}

/** Ends an interpreter and what its last block started, but not what earlier blocks left running. */
async function killSince(
  interpreter: Interpreter,
  before: readonly number[],
  mark: { readonly name: string; readonly value: string },
): Promise<void> {
  // While stopped, it starts nothing new, and its children can still be identified.
  interpreter.process.kill("SIGSTOP");
  const children = (await childrenOf(interpreter)).filter((pid) => !before.includes(pid));
  await Promise.all([{ mark }, ...children.map((root) => ({ root, mark }))].map(killProcesses));
  interpreter.process.kill("SIGKILL");
}
