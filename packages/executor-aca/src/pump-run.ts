import { readFile, stat } from "node:fs/promises";
import { BackendUnavailableError, ExecutorStoppedError } from "@fenced/core";
import {
  blockEnvironment,
  functionVariables,
  timeIsUp,
  WriteAhead,
  type BlockEvent,
  type BlockOutcome,
} from "@fenced/executor-kit";
import { bundleSize } from "@fenced/executor-kit/displays";
import { OutcomeUnknownError } from "./api/session-api.ts";
import { isSessionGone } from "./http/service-error.ts";
import { BlockFrames, type Printed } from "./pump/block-frames.ts";
import { type BlockStart, type PumpLine, PumpLostError } from "./pump/pump-line.ts";
import { mostOutput, SessionRun } from "./session-run.ts";
import type { RemoteSession, SessionState } from "./session/remote-session.ts";

/** Milliseconds that a step waits for something to report, and so the longest time that an abort is delayed. */
const stepMs = 1000;
/** The same while programs are connected and may wait for an answer: at first, and at most. */
const [firstCallMs, longestCallMs] = [50, 500];
/** Milliseconds to wait for an answer that can be sent along with the next step. */
const answerMs = 25;
/** Milliseconds for ending a block, and for the journal of its dead interpreter to appear. */
const [stopMs, journalMs] = [10_000, 3000];
/** Steps to fetch what an ended block had printed; each brings half a mebibyte. */
const mostLastSteps = 40;

/** One block in a thread of the session's interpreter, polled in steps. */
export class PumpRun extends SessionRun {
  #frames = new BlockFrames(0);
  #line: PumpLine | undefined;
  #forged: PumpLostError | undefined;

  protected async begin(): Promise<SessionState> {
    const line = lineOf(this.session);
    this.#line = line;
    this.#frames = new BlockFrames(line.current + 1);
    line.follow(this.#frames);
    try {
      await this.#start(line, this.#order(line));
      return "ready";
    } catch (error) {
      // It may have begun, so it is ended in the session.
      if (this.signal.aborted) return "ready";
      if (isSessionGone(error)) return "gone";
      if (!(error instanceof PumpLostError)) throw asBroken(error);
      // The interpreter died with the block, or was replaced since.
      if (error.reason === "died") return "ready";
      if (error.reason === "forged") {
        // The block may have run, so it must not begin a second time.
        this.#forged = error;
        return "ready";
      }
      // Only ending the session ends the earlier block.
      if (error.reason === "busy") await this.#replace();
      return "bare";
    }
  }

  protected async inSession(): Promise<BlockOutcome> {
    const line = lineOf(this.session);
    try {
      if (this.#forged) throw this.#forged;
      await this.#follow(line);
      // A slow reader may get the last output only when the block's time is up.
      const ended = this.endedAt !== undefined && this.signal.reason === timeIsUp;
      if (this.signal.aborted && !ended) return await this.#stop(line);
      await this.write(this.conditions.displays.end());
      return this.report({ exitCode: this.#frames.end?.exit ?? 1 });
    } catch (error) {
      if (this.endedAt !== undefined || this.signal.aborted) throw error;
      if (!(error instanceof PumpLostError)) throw asBroken(error);
      if (error.reason !== "forged") return this.#died(line, error);
      this.stateLost = true;
      await this.write(await this.#events(this.#frames.take()));
      await this.#replace();
      throw asBroken(error);
    }
  }

  protected async printedUntil(log: string): Promise<readonly BlockEvent[]> {
    const isJournal = (await stat(log)).size <= mostOutput;
    if (isJournal) this.#line?.takeJournal(await readFile(log));
    return this.#events(this.#frames.take());
  }

  async #replace(): Promise<void> {
    const { session } = this;
    const { place } = this.pool;
    if (place.holds(session)) place.onLost("The pool's session was abandoned: its interpreter no longer responds");
    await place.replace(session);
  }

  #order({ address }: PumpLine): BlockStart {
    const { env, code, hostCalls } = this.block;
    const { functionsDirectory: python, functions } = this.pool;
    const directory = hostCalls?.variant === undefined ? python : `${python}/${hostCalls.variant}`;
    // The session may have been replaced since the call began, and its socket with it.
    const variables = hostCalls
      ? { ...functionVariables({ python }, hostCalls, env, ":"), FENCED_HOST_CALLS: address }
      : {};
    const names = [functions.module, `_${functions.module}_host`];
    return {
      number: this.#frames.number,
      code,
      quiet: !this.conditions.showsResult,
      env: { ...blockEnvironment, ...env, ...variables },
      functions,
      modules: { root: python, directory, names },
    };
  }

  /** Starts the block, once: if the answer was lost, asks whether it has begun. */
  async #start(line: PumpLine, start: BlockStart): Promise<void> {
    const { signal } = this;
    const order = { start, wait: stepMs };
    try {
      await line.step(order, signal, false);
    } catch (error) {
      if (!(error instanceof OutcomeUnknownError)) throw error;
      await line.step({ wait: 0 }, signal).catch((failure: unknown) => {
        // The interpreter died in the meantime: it is unknown whether the block has run.
        if (failure instanceof PumpLostError) throw error;
        throw failure;
      });
      if (line.current !== start.number) await line.step(order, signal);
    }
  }

  /** Passes on what the block prints until it ends or must end. */
  async #follow(line: PumpLine): Promise<void> {
    const { signal } = this;
    const output = new WriteAhead(this.sink);
    let wait = firstCallMs;
    for (;;) {
      const printed = this.#frames.take();
      if (this.#frames.end) this.endedAt ??= performance.now();
      for (const event of await this.#events(printed)) await output.write(event, sizeOf(event));
      if (this.#frames.end || signal.aborted) return;
      if (line.isConnected && !line.hasBytes) await line.moment(answerMs, signal);
      wait = line.hasBytes || printed.length > 0 ? firstCallMs : Math.min(2 * wait, longestCallMs);
      await line.step({ wait: line.isConnected ? wait : stepMs }, signal).catch((error: unknown) => {
        if (!signal.aborted) throw error;
      });
    }
  }

  /** Ends the block between two steps; if that is impossible, its session. */
  async #stop(line: PumpLine): Promise<BlockOutcome> {
    if (ExecutorStoppedError.isInstance(this.signal.reason)) return { exitCode: 1 };
    const frames = this.#frames;
    const signal = AbortSignal.timeout(stopMs);
    try {
      let left = await line.step({ wait: 100, stop: frames.number }, signal);
      for (let step = 0; step < mostLastSteps && !frames.end && left === "fine"; step += 1) {
        left = await line.step({ wait: 100, stop: frames.number }, signal);
      }
      if (frames.end && left === "fine") {
        await this.write(await this.#events(frames.take()));
        return this.reportAborted();
      }
    } catch {
      // The interpreter does not answer: it may be busy in native code.
    }
    await this.write(await this.#events(frames.take()));
    return this.giveUp();
  }

  /** The pump ended before the block: output until then may be in the scribe's journal. */
  async #died(line: PumpLine, lost: PumpLostError): Promise<BlockOutcome> {
    line.fail("its interpreter ended");
    const signal = AbortSignal.timeout(journalMs);
    await line.readJournal(() => this.session.api.readFile(this.pool.logName, signal), journalMs);
    await this.write(await this.#events(this.#frames.take()));
    // The whole session may be gone, although it was the interpreter that stopped answering first.
    const reason = await this.#leaveDead(line, lost).catch((error: unknown) => {
      throw asBroken(error);
    });
    if (this.#frames.end) return this.report({ exitCode: this.#frames.end.exit });
    await this.write([{ type: "stderr", data: `${reason}\n` }]);
    return this.report({ exitCode: 1 });
  }

  /** Gives up a session whose pump is damaged: threads of the block may still run there. @returns what happened to the block. */
  async #leaveDead(line: PumpLine, { reason }: PumpLostError): Promise<string> {
    if (reason === "taken") return "Another executor took the session over while the block ran";
    if (!(await line.hasInterpreter(AbortSignal.timeout(journalMs)))) {
      return "The session's interpreter ended while the block ran";
    }
    this.stateLost = true;
    await this.#replace();
    return "The session was abandoned while the block ran: code damaged the interpreter's state, which the executor needs";
  }

  async #events(printed: readonly Printed[]): Promise<BlockEvent[]> {
    const { displays } = this.conditions;
    const events: BlockEvent[] = [];
    for (const each of printed) {
      if ("type" in each) events.push(...displays.cleared([each]));
      else events.push(...onOwnLine(await displays.take(each.message), each.startsLine));
    }
    return events;
  }
}

function sizeOf(event: BlockEvent): number {
  if (event.type === "display") return bundleSize(event.display.data);
  return event.type === "clear" ? 0 : event.data.length;
}

/** What is printed of a display begins a line. */
function onOwnLine(events: BlockEvent[], startsLine: boolean): BlockEvent[] {
  return startsLine || !events.some(({ type }) => type === "stdout")
    ? events
    : [{ type: "stdout", data: "\n" }, ...events];
}

function lineOf({ line }: RemoteSession): PumpLine {
  if (line) return line;
  throw new TypeError("this session has no pump");
}

function asBroken(error: unknown): unknown {
  if (error instanceof PumpLostError) {
    return new BackendUnavailableError("Something other than the session's pump is answering", {
      remedy:
        "Code in the session has changed the pump. Call again: the next block runs in a new session with the same files.",
      cause: error,
    });
  }
  if (!isSessionGone(error)) return error;
  return new BackendUnavailableError("The pool's session disappeared while it was running the block", {
    remedy: "Check the pool's cooldown, and what the block did, before you run it again: part of it has run.",
    cause: error,
  });
}
