import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { blockEnvironment } from "@fenced/executor-kit";
import {
  connectSupervisor,
  supervisorCommand,
  type Supervisor,
  type WarmPrograms,
} from "@fenced/executor-kit/supervisor";
import { onTestFinished } from "vitest";
import { temporaryDirectory } from "./temporary-directory.ts";
import { TextSink } from "./text-sink.ts";

/** The outcome of a program. */
export interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode: number;
}

interface Given {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
  readonly name?: string;
  readonly signal?: AbortSignal;
  readonly python?: string;
}

/** A supervisor, and Python programs that it runs one after another. */
export class PythonPlace {
  readonly supervisor: Supervisor;
  readonly directory: string;
  readonly home: string;
  readonly python: string;
  readonly #pid: number;
  readonly end: () => Promise<void>;

  constructor(parts: Pick<PythonPlace, "supervisor" | "directory" | "home" | "python" | "end"> & { pid: number }) {
    ({ supervisor: this.supervisor, directory: this.directory, home: this.home } = parts);
    ({ python: this.python, end: this.end } = parts);
    this.#pid = parts.pid;
  }

  async run(
    code: string,
    { env = blockEnvironment, stdin, name = "program.py", signal, python = this.python }: Given = {},
  ): Promise<Outcome> {
    const file = path.join(this.directory, name);
    await writeFile(file, code);
    const output = new TextSink(signal);
    const more = stdin === undefined ? {} : { stdin };
    const { exitCode } = await this.supervisor.run({ argv: [python, file], env, ...more }, output);
    return { stdout: output.stdout, stderr: output.stderr, exitCode };
  }

  /** The process that forks programs now: the supervisor's own, or the waiting interpreter. */
  async forker(given: Given = {}): Promise<number> {
    return Number((await this.run(forker, given)).stdout);
  }

  async isWarm(given: Given = {}): Promise<boolean> {
    return (await this.forker(given)) !== this.#pid;
  }

  /** Keeps an interpreter waiting, and returns it once programs come from it. */
  async warm(settings: Partial<WarmPrograms> = {}): Promise<number> {
    const { python } = this;
    this.supervisor.keepWarm({ python, env: blockEnvironment, ...settings });
    return this.awaitWarm({ env: settings.env ?? blockEnvironment });
  }

  async awaitWarm(given: Given = {}, other = this.#pid): Promise<number> {
    for (;;) {
      const found = await this.forker(given);
      if (found !== this.#pid && found !== other) return found;
      await sleep(20);
    }
  }
}

/** The parent of the shepherd. */
const forker = 'import os\nprint(open("/proc/%d/stat" % os.getppid()).read().rpartition(")")[2].split()[1])';

/**
 * Opens a supervisor for one test.
 *
 * @param relay - passes on what the supervisor sends. Default: at once.
 */
export async function openPythonPlace(relay?: Duplex): Promise<PythonPlace> {
  const directory = await temporaryDirectory();
  const programs = ["python3"];
  const [program, ...words] = supervisorCommand({
    directory: path.join(await temporaryDirectory(), "session"),
    workspace: directory,
    programs,
  });
  const home = await temporaryDirectory();
  const env = { PATH: process.env["PATH"] ?? "", HOME: home, LANG: "C.UTF-8" };
  const child = spawn(program, words, { stdio: ["pipe", "pipe", "pipe"], env });
  const end = async (): Promise<void> => {
    child.stdin.destroy();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  };
  onTestFinished(end);
  const { supervisor, inventory } = await connectSupervisor({
    stdin: child.stdin,
    stdout: relay ? child.stdout.pipe(relay) : child.stdout,
    stderr: child.stderr,
  });
  if (!supervisor) throw new Error("There is no Python.");
  const place = { supervisor, directory, home, end, python: "", pid: inventory.process };
  const { stdout } = await new PythonPlace({ ...place, python: inventory.programs.get("python3") ?? "" }).run(
    "import sys\nprint(sys.executable)",
  );
  // Not the shim of a version manager, which is not an interpreter.
  return new PythonPlace({ ...place, python: stdout.trim() });
}
