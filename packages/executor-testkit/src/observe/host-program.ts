import { AssertionError } from "node:assert/strict";
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setImmediate as immediately, setTimeout as sleep } from "node:timers/promises";
import type { CaseContext } from "../case-context.ts";
import { hostReportMark, hostRequestVariable, type HostRequest } from "../host-request.ts";

/** A separate program that uses the executor, so that the suite can check what it leaves behind. */
export class HostProgram implements AsyncDisposable {
  readonly reports: unknown[] = [];
  /** What it wrote to standard error. */
  errors = "";
  readonly #kit: CaseContext;
  readonly #process: ChildProcessByStdio<null, Readable, Readable>;
  readonly #ended: Promise<unknown>;
  /** Everything that it wrote has arrived. */
  readonly #read: Promise<unknown>;

  constructor(kit: CaseContext, request: HostRequest) {
    const [program, ...args] = kit.subject.hostCommand;
    this.#kit = kit;
    this.#process = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, [hostRequestVariable]: JSON.stringify(request) },
    });
    this.#ended = once(this.#process, "exit");
    this.#ended.catch(() => {});
    const lines = createInterface(this.#process.stdout).on("line", (line) => {
      if (line.startsWith(hostReportMark)) this.reports.push(JSON.parse(line.slice(hostReportMark.length)));
    });
    this.#read = once(lines, "close");
    this.#read.catch(() => {});
    this.#process.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.errors += text;
    });
  }

  /** Polls for something that the program does; fails if the program ends first. */
  async until<T>(what: string, probe: () => Promise<T | undefined> | T | undefined): Promise<T> {
    return this.#kit.eventually(what, async () => {
      const ended = this.#process.exitCode !== null || this.#process.signalCode !== null;
      const answer = await probe();
      if (ended && answer === undefined) {
        throw new AssertionError({ message: `${what}: the program ended first: ${this.errors}` });
      }
      return answer;
    });
  }

  /** Sends the program a signal and waits until it is gone. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    this.#process.kill(signal);
    await this.#kit.within(`the host program after ${signal}`, this.#ended);
  }

  /** Waits until the program ends by itself, and all its reports are there. */
  async end(): Promise<void> {
    await this.#kit.within("the end of the host program (something keeps Node alive)", this.#ended);
    // A child process that it has left may keep its output open, and must not be waited for: it would be gone then.
    await Promise.race([this.#read, readWhatIsThere()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) await this.kill("SIGKILL");
  }
}

/** Resolves after a second, and once what had been written until then has been read, however long this process was held up. */
async function readWhatIsThere(): Promise<void> {
  await sleep(1000);
  for (let turn = 0; turn < 3; turn += 1) await immediately();
}
