import { createReadStream } from "node:fs";
import type { BlockEvent, BlockOutcome } from "@fenced/executor-kit";
import type { ExecutionAnswer } from "./api/session-api.ts";
import { mostOutput, SessionRun } from "./session-run.ts";
import { arrangeOutput } from "./session/arrange-output.ts";
import { openLate } from "./session/open-late.ts";
import { readLog } from "./session/output-log.ts";
import type { SessionState } from "./session/remote-session.ts";
import { readValue } from "./session/result-display.ts";

/** One block as one execution of the service, whose answer contains all output. */
export class RequestRun extends SessionRun {
  protected async begin(): Promise<SessionState> {
    return this.session.begin(this.block.env, this.signal);
  }

  protected async inSession(): Promise<BlockOutcome> {
    return this.#show(await this.#execute());
  }

  protected async printedUntil(log: string): Promise<readonly BlockEvent[]> {
    const printed: BlockEvent[] = [];
    let length = 0;
    for await (const record of readLog(createReadStream(log))) {
      if (record.type === "cut" || (length += record.data.length) > mostOutput) break;
      printed.push({ type: record.type, data: Buffer.from(record.data) });
    }
    return printed;
  }

  async #execute(): Promise<ExecutionAnswer> {
    const { session } = this;
    const { code, env, timeoutMs } = this.block;
    const wrapped = this.pool.language.wrap(code, env);
    const order = { code: wrapped, timeoutMs, maxOutput: this.maxOutput, repeatable: false, signal: this.signal };
    const answer = await session.api.execute(order);
    this.endedAt = performance.now();
    // A concurrent block had to be ended, and the shared session went with it.
    if (!this.pool.place.holds(session)) this.stateLost = true;
    return answer;
  }

  /** The value of the last expression: its pictures, or its text on its own line. */
  async #showValue({ result }: ExecutionAnswer, startsLine: boolean): Promise<void> {
    const { displays, showsResult } = this.conditions;
    const { pictures, text } = readValue(result);
    for (const data of pictures) {
      await this.write(await displays.events({ data, isUpdate: false, isQuiet: !showsResult }));
    }
    if (text !== undefined && showsResult) {
      await this.write([{ type: "stdout", data: `${startsLine ? "" : "\n"}${text}\n` }]);
    }
  }

  async #show(answer: ExecutionAnswer): Promise<BlockOutcome> {
    const { api } = this.session;
    const { logName, language } = this.pool;
    const { stdout, stderr, error, succeeded } = answer;
    const arranged = arrangeOutput({
      stdout,
      stderr,
      maxOutput: this.maxOutput,
      openLog: language.hasLog ? () => openLate((signal) => api.readFile(logName, signal), this.signal) : undefined,
    });
    let step = await arranged.next();
    for (; step.done !== true; step = await arranged.next()) await this.write([step.value]);
    const truncated = step.value;
    await this.#showValue(answer, stdout === "" || stdout.endsWith("\n"));
    const message = error?.message ?? "";
    if (!succeeded && !stderr.includes(message)) await this.write([{ type: "stderr", data: `${message}\n` }]);
    return this.report({ exitCode: exitCodeOf(answer), truncated });
  }
}

function exitCodeOf({ succeeded, exitCode, error }: ExecutionAnswer): number {
  if (exitCode !== undefined) return exitCode;
  if (succeeded) return 0;
  const asked = /^SystemExit(?:: (\d+|None))?$/.exec(error?.message ?? "");
  if (!asked) return 1;
  return asked[1] === undefined || asked[1] === "None" ? 0 : Number(asked[1]) & 255;
}
