import { randomUUID } from "node:crypto";
import { mkdirSync } from "node:fs";
import { SessionDirectory } from "../files/session-directory.ts";
import { ServiceFailure } from "../service-failure.ts";
import { SessionProcess, type RunReport, type SessionProcessSpec } from "./session-process.ts";

/** A client's request to run code. */
export interface ExecutionRequest {
  readonly id: string;
  readonly executionType: "Synchronous" | "Asynchronous";
  readonly code: string;
  /** Seconds. */
  readonly timeout: number;
  /** Maximum bytes to keep of each stream. */
  readonly outputLimit: number;
  /** Forget the variables first. */
  readonly emptyKernel: boolean;
}

/** One piece of code in a session, from its acceptance to its end. */
export class Execution {
  readonly request: ExecutionRequest;
  /** Resolves when it has ended, however that happens. */
  readonly ended: Promise<void>;
  status = "NotStarted";
  report: RunReport | undefined;
  milliseconds = 0;
  /** The approximate size of the report, in characters. */
  size = 0;

  /** @param run - runs the code when its turn comes; calls back when it begins. */
  constructor(request: ExecutionRequest, run: (begins: () => void) => Promise<RunReport>) {
    this.request = request;
    let started = performance.now();
    const begins = (): void => {
      started = performance.now();
      this.status = "Running";
    };
    this.ended = run(begins).then((report) => {
      this.milliseconds = Math.round(performance.now() - started);
      this.status = report.status;
      this.report = report;
      this.size = JSON.stringify(report).length;
    });
  }
}

/** How many finished executions of a session are kept for queries, and how many characters in total. */
const [mostRemembered, mostCharacters] = [1000, 64 * 1024 * 1024];

/** Milliseconds that a session has to end interrupted code before its process is killed. */
const graceMs = 10_000;

/** One session: its process, its files and its executions. */
export class Session {
  readonly identifier: string;
  readonly files: SessionDirectory;
  readonly #etag: string = randomUUID();
  readonly #createdAt: Date = new Date();
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
    life: { readonly cooldownMs: number; readonly uploads: string; readonly expire: () => void },
  ) {
    mkdirSync(spec.directory, { recursive: true });
    this.identifier = identifier;
    this.files = new SessionDirectory(spec.directory, life.uploads);
    this.#process = new SessionProcess(spec);
    this.#cooldownMs = life.cooldownMs;
    this.#expire = life.expire;
    this.touch();
  }

  /** The session, as the API describes it. */
  get resource(): object {
    return {
      identifier: this.identifier,
      etag: this.#etag,
      createdAt: this.#createdAt.toISOString(),
      lastAccessedAt: this.#lastAccessedAt.toISOString(),
      expireAt: new Date(this.#lastAccessedAt.getTime() + this.#cooldownMs).toISOString(),
    };
  }

  /** Restarts the session's cooldown, which never ends while code runs. */
  touch(): void {
    // Code ends with its session, and a timer started then would end the identifier's next session.
    if (this.#ended) return;
    this.#lastAccessedAt = new Date();
    clearTimeout(this.#timer);
    if (this.#busy > 0) return;
    this.#timer = setTimeout(this.#expire, this.#cooldownMs);
    this.#timer.unref();
  }

  /** @throws ServiceFailure if there is already an execution with this id; the code does not run again. */
  execute(request: ExecutionRequest): Execution {
    if (this.#executions.has(request.id)) {
      throw new ServiceFailure(409, "OperationIdConflict", `The execution ${request.id} already exists.`);
    }
    const execution = new Execution(request, (begins) => this.#inTurn(() => this.#run(request, begins)));
    this.#executions.set(request.id, execution);
    void execution.ended.then(() => this.#forget());
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
    await this.files.destroy();
  }

  #forget(): void {
    const ended = [...this.#executions].filter(([, { report }]) => report !== undefined);
    let characters = ended.reduce((sum, [, { size }]) => sum + size, 0);
    for (const [index, [id, { size }]] of ended.slice(0, -1).entries()) {
      if (ended.length - index <= mostRemembered && characters <= mostCharacters) return;
      this.#executions.delete(id);
      characters -= size;
    }
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
    let timer = setTimeout(() => {
      timeout.abort();
      this.#process.interrupt();
      timer = setTimeout(() => this.#process.kill(), graceMs);
    }, request.timeout * 1000);
    const report = await this.#process.run(randomUUID(), request.code, request.outputLimit);
    clearTimeout(timer);
    if (!timeout.signal.aborted) return report;
    const message = `The execution took longer than ${request.timeout} seconds.`;
    return { ...report, status: "Failed", error: { code: "ExecutionTimeout", message } };
  }
}
