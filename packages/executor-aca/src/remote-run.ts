import { createReadStream } from "node:fs";
import { BackendUnavailableError, ExecutorStoppedError } from "@fenced/core";
import { timeIsUp, type BlockEvent, type BlockOutcome, type BlockRun } from "@fenced/executor-kit";
import { OutcomeUnknownError, type ExecutionAnswer } from "./api/session-api.ts";
import { ServiceError } from "./http/service-error.ts";
import type { OpenPool } from "./open-pool.ts";
import { arrangeOutput } from "./session/arrange-output.ts";
import { openLate } from "./session/open-late.ts";
import { readLog } from "./session/output-log.ts";
import type { RemoteSession } from "./session/remote-session.ts";
import { readValue } from "./session/result-display.ts";

/** What a run needs from its executor. */
export interface RunConditions {
  readonly maxOutputBytes: number;
  /** Whether the value of the last expression is printed. */
  readonly showsResult: boolean;
  /** Where pictures are saved. */
  readonly pictures: () => Promise<string>;
  /** Writes the block's file into the session, if it has one. */
  readonly writeFile: () => Promise<void>;
  readonly setUpFunctions: () => Promise<void>;
}

/** Asked for in addition to what a result keeps, so that the omitted bytes can be counted. */
const [outputReserve, mostOutput] = [4096, 16 * 1024 * 1024];
/** Sessions that a block may lose before it gives up. */
const sessionAttempts = 5;

/** One block on its way through a session. */
export class RemoteRun {
  readonly #run: BlockRun;
  readonly #pool: OpenPool;
  readonly #conditions: RunConditions;
  readonly #maxOutput: number;
  #stateLost = false;
  #reported = false;
  /** When the service answered; `undefined` until the block has ended. */
  #endedAt: number | undefined;

  constructor(run: BlockRun, pool: OpenPool, conditions: RunConditions) {
    this.#run = run;
    this.#pool = pool;
    this.#conditions = conditions;
    this.#maxOutput = Math.min(conditions.maxOutputBytes + outputReserve, mostOutput);
  }

  async *events(): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const { place } = this.#pool;
    this.#stateLost = place.lossUnreported;
    place.lossUnreported = false;
    try {
      return yield* this.#inSomeSession();
    } finally {
      // An aborted or rejected call does not report that variables are gone, so the next result has to.
      if (this.#stateLost && !this.#reported) place.lossUnreported = true;
    }
  }

  async *#inSomeSession(): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    for (let attempt = 1; ; attempt += 1) {
      const session = await this.#prepare();
      try {
        return yield* this.#show(await this.#execute(session), session);
      } catch (error) {
        // The block has run; only its output could not be shown.
        if (this.#endedAt !== undefined) throw error;
        if (this.#run.signal.aborted) return yield* this.#giveUp(session);
        // Refused because the session is gone: the block has not run.
        const lost = error instanceof ServiceError && error.isSessionGone && attempt < sessionAttempts;
        if (!lost) throw asUnknownOutcome(error);
        await this.#renew(session, "gone");
      }
    }
  }

  /** The session, prepared with our variables and functions and the block's environment. */
  async #prepare(): Promise<RemoteSession> {
    const { place } = this.#pool;
    const { env, signal } = this.#run;
    for (let attempt = 1; attempt <= sessionAttempts; attempt += 1) {
      const session = await place.session(signal);
      if (place.functionsMissing) {
        place.functionsMissing = false;
        await this.#conditions.setUpFunctions().catch((error: unknown) => {
          place.functionsMissing = true;
          throw error;
        });
      }
      const state = await session.begin(env, signal);
      if (state === "ready") return session;
      await this.#renew(session, state);
    }
    throw new BackendUnavailableError("The pool loses its sessions as fast as it creates them", {
      remedy: "Check the pool's cooldown and its logs.",
    });
  }

  async #renew(lost: RemoteSession, state: "bare" | "gone"): Promise<void> {
    const { place } = this.#pool;
    this.#stateLost = true;
    if (state === "bare") await place.repair(lost, this.#run.signal);
    else await place.renew(lost, this.#run.signal);
    await this.#conditions.writeFile();
  }

  async #execute(session: RemoteSession): Promise<ExecutionAnswer> {
    const { code, env, timeoutMs, signal } = this.#run;
    const wrapped = this.#pool.language.wrap(code, env);
    const order = { code: wrapped, timeoutMs, maxOutput: this.#maxOutput, repeatable: false, signal };
    const answer = await session.api.execute(order);
    this.#endedAt = performance.now();
    // A concurrent block had to be ended, and the shared session went with it.
    if (!this.#pool.place.holds(session)) this.#stateLost = true;
    return answer;
  }

  async *#show(answer: ExecutionAnswer, { api }: RemoteSession): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    const { logName, language } = this.#pool;
    const truncated = yield* arrangeOutput({
      stdout: answer.stdout,
      stderr: answer.stderr,
      maxOutput: this.#maxOutput,
      openLog: language.hasLog
        ? () => openLate((signal) => api.readFile(logName, signal), this.#run.signal)
        : undefined,
    });
    const { displays, text } = await readValue(answer.result, this.#conditions.pictures);
    for (const display of displays) yield { type: "display", display };
    if (text !== undefined && this.#conditions.showsResult) {
      yield { type: "stdout", data: `${answer.stdout === "" || answer.stdout.endsWith("\n") ? "" : "\n"}${text}\n` };
    }
    const message = answer.error?.message ?? "";
    if (!answer.succeeded && !answer.stderr.includes(message)) yield { type: "stderr", data: `${message}\n` };
    this.#reported = true;
    const endedAt = this.#endedAt === undefined ? {} : { endedAt: this.#endedAt };
    return { exitCode: exitCodeOf(answer), truncated, stateLost: this.#stateLost, ...endedAt };
  }

  /** No call ends a running block, so the session is given up. The block's output so far is kept. */
  async *#giveUp(session: RemoteSession): AsyncGenerator<BlockEvent, BlockOutcome, void> {
    // An executor that stops or restarts gives up the session itself.
    if (ExecutorStoppedError.isInstance(this.#run.signal.reason)) return { exitCode: 1 };
    this.#stateLost = true;
    if (this.#pool.place.holds(session)) {
      this.#pool.place.onLost(
        "The session of the pool was given up to end what ran in it; its files are in another one",
      );
    }
    const printed: BlockEvent[] = [];
    await this.#pool.place.replace(session, async (log) => {
      let length = 0;
      for await (const record of readLog(createReadStream(log))) {
        if (record.type === "cut" || (length += record.data.length) > mostOutput) break;
        printed.push({ type: record.type, data: Buffer.from(record.data) });
      }
    });
    this.#reported = this.#run.signal.reason === timeIsUp;
    yield* printed;
    return { exitCode: 1, stateLost: true };
  }
}

function exitCodeOf({ succeeded, exitCode, error }: ExecutionAnswer): number {
  if (exitCode !== undefined) return exitCode;
  if (succeeded) return 0;
  const asked = /^SystemExit(?:: (\d+|None))?$/.exec(error?.message ?? "");
  if (!asked) return 1;
  return asked[1] === undefined || asked[1] === "None" ? 0 : Number(asked[1]) & 255;
}

function asUnknownOutcome(error: unknown): unknown {
  if (!(error instanceof OutcomeUnknownError)) return error;
  return new BackendUnavailableError(`${error.message}: it may or may not have run`, {
    remedy: "It was not sent again: check what it did before you run it a second time.",
    cause: error.cause,
  });
}
