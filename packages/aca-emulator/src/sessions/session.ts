import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { SessionDirectory } from "../files/session-directory.ts";
import { ServiceFailure } from "../service-failure.ts";
import { Execution, type ExecutionRequest } from "./execution.ts";
import { SessionProcess, type RunReport, type SessionProcessSpec } from "./session-process.ts";

/** How long a finished execution can be asked about: the last so many of a session. */
const rememberedExecutions = 1000;

/** One session: its process, its files and what was run in it. */
export class Session {
  readonly identifier: string;
  readonly files: SessionDirectory;
  readonly etag: string = randomUUID();
  readonly createdAt: Date = new Date();
  readonly #process: SessionProcess;
  readonly #executions = new Map<string, Execution>();
  readonly #cooldownMs: number;
  readonly #expire: () => void;
  #lastAccessedAt = new Date();
  #timer: NodeJS.Timeout | undefined;
  #busy = 0;
  #ended = false;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(
    identifier: string,
    spec: SessionProcessSpec,
    life: { readonly cooldownMs: number; readonly expire: () => void },
  ) {
    mkdirSync(spec.directory, { recursive: true });
    this.identifier = identifier;
    this.files = new SessionDirectory(spec.directory);
    this.#process = new SessionProcess(spec);
    this.#cooldownMs = life.cooldownMs;
    this.#expire = life.expire;
    this.touch();
  }

  get lastAccessedAt(): Date {
    return this.#lastAccessedAt;
  }

  get expireAt(): Date {
    return new Date(this.#lastAccessedAt.getTime() + this.#cooldownMs);
  }

  /** Puts the end of the session off; while code runs it does not come. */
  touch(): void {
    // Code ends with its session, and a timer started then would end the identifier's next session.
    if (this.#ended) return;
    this.#lastAccessedAt = new Date();
    clearTimeout(this.#timer);
    if (this.#busy > 0) return;
    this.#timer = setTimeout(this.#expire, this.#cooldownMs);
    this.#timer.unref();
  }

  /** @throws ServiceFailure if there is already an execution of this id: it is not run again. */
  execute(request: ExecutionRequest): Execution {
    if (this.#executions.has(request.id)) {
      throw new ServiceFailure(409, "OperationIdConflict", `There is already an execution ${request.id}.`);
    }
    const execution = new Execution(request, (begins) => this.#inTurn(() => this.#run(request, begins)));
    this.#executions.set(request.id, execution);
    const [oldest] = this.#executions.keys();
    if (this.#executions.size > rememberedExecutions && oldest !== undefined) this.#executions.delete(oldest);
    return execution;
  }

  /** @throws ServiceFailure if there is none. */
  execution(id: string): Execution {
    const found = this.#executions.get(id);
    if (found) return found;
    throw new ServiceFailure(404, "ExecutionNotFound", `There is no execution ${id} in this session.`);
  }

  async end(): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    await this.#process.end();
    await rm(this.files.root, { recursive: true, force: true });
  }

  async #inTurn(run: () => Promise<RunReport>): Promise<RunReport> {
    this.#busy += 1;
    this.touch();
    const mine = this.#queue.then(run);
    this.#queue = mine;
    try {
      return await mine;
    } finally {
      this.#busy -= 1;
      this.touch();
    }
  }

  async #run(request: ExecutionRequest, begins: () => void): Promise<RunReport> {
    begins();
    if (request.emptyKernel) this.#process.reset();
    const timeout = new AbortController();
    const timer = setTimeout(() => {
      timeout.abort();
      this.#process.interrupt();
    }, request.timeout * 1000);
    const report = await this.#process.run(randomUUID(), request.code, request.outputLimit);
    clearTimeout(timer);
    if (!timeout.signal.aborted) return report;
    const message = `The execution took longer than ${request.timeout} seconds.`;
    return { ...report, status: "Failed", error: { code: "ExecutionTimeout", message } };
  }
}
