import { readFileSync } from "node:fs";
import { type ExecutorProcesses, JsonLimitError, type JsonObject, parseJson, type WritableProcess } from "@fenced/core";
import { within } from "@fenced/core/abort";
import * as z from "zod";
import { encodeFrame, type Frame, readFrames } from "../guest/frames.ts";
import { serverProgram } from "../guest/server-programs.ts";
import { InterpreterFailure } from "./interpreter-failure.ts";
import type { Language } from "./languages.ts";

const contextProgram: string = readFileSync(new URL("./programs/context.py", import.meta.url), "utf8");

/** How long an interpreter may take to start, in milliseconds. */
const startMs = 60_000;
/** The exit code of a program that does not exist. */
const missingProgram = 127;
/** What the JSON of a message may contain; code chooses its values. */
const messageLimits = { maxValues: 400_000, maxNames: 100_000 };

/** What the program that runs a context reports. Code can write anything there. */
const reportSchema = z.discriminatedUnion("event", [
  z.object({ event: z.literal("ready") }),
  z.object({ event: z.literal("failed"), what: z.enum(["directory", "program"]), reason: z.string().max(1000) }),
  z.object({ event: z.literal("begun") }),
  z.object({ event: z.enum(["stdout", "stderr"]) }),
  z.object({ event: z.literal("message"), message: z.unknown() }),
  z.object({ event: z.literal("left_out"), bytes: z.number() }),
  z.object({ event: z.literal("done") }),
  z.object({ event: z.literal("ended"), exitCode: z.number() }),
]);

/** What an interpreter reports of a cell. */
export type CellEvent =
  | { readonly kind: "begun" | "done" }
  | { readonly kind: "stdout" | "stderr"; readonly bytes: Uint8Array }
  /** Something that it shows, or an error. */
  | { readonly kind: "message"; readonly message: unknown }
  /** Something that it would have shown if it were not too large. */
  | { readonly kind: "leftOut"; readonly reason: string };

/** A cell to run. */
export interface Cell {
  readonly code: string;
  /** Variables for this cell alone. */
  readonly env: Readonly<Record<string, string>>;
  readonly number: number;
}

/** How an interpreter is started. */
export interface InterpreterStart {
  readonly processes: ExecutorProcesses;
  readonly language: Language;
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
}

/** The interpreter has ended, with all variables. */
export class InterpreterLost extends Error {
  override readonly name = "InterpreterLost";
  readonly exitCode: number | undefined;

  constructor(message: string, exitCode?: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

/**
 * A program in the sandbox that keeps one interpreter, and gives it one cell after another. Code there can end it or write
 * in its place, so what it reports is checked, and can only be wrong about that sandbox.
 */
export class Interpreter {
  readonly #process: WritableProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #frames: AsyncGenerator<Frame, void, void>;
  #next: Promise<CellEvent> | undefined;
  #lost: InterpreterLost | undefined;

  private constructor(process: WritableProcess) {
    this.#process = process;
    this.#writer = process.stdin.getWriter();
    this.#writer.closed.catch(() => {});
    this.#frames = readFrames(process.stdout);
    process.stderr.cancel().catch(() => {});
  }

  /**
   * Starts one, and waits until it can run cells.
   *
   * @throws InterpreterFailure if the sandbox lacks what it needs, or it does not start.
   */
  static async start({ processes, language, cwd, env }: InterpreterStart): Promise<Interpreter> {
    const command = serverProgram(contextProgram);
    const interpreter = new Interpreter(await processes.start({ command, env, stdin: true }));
    try {
      const place = cwd === undefined ? {} : { cwd };
      await interpreter.#write({ op: "start", ...language.start?.(), ...place });
      if (!(await within(startMs, interpreter.#becomeReady(language, cwd)))) {
        throw new InterpreterFailure(500, `The sandbox's ${language.name} does not start`);
      }
      return interpreter;
    } catch (error) {
      await interpreter.end();
      if (!(error instanceof InterpreterLost)) throw error;
      if (error.exitCode === missingProgram) {
        throw new InterpreterFailure(500, "The sandbox has no python3: use a template with Python 3.8 or later");
      }
      throw new InterpreterFailure(500, `${error.message} before it could run code`, { cause: error });
    }
  }

  /** It has ended, or reported something that is not valid. */
  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  /** Gives it a cell. Call it when the last cell is done. Never rejects: what it reports next says whether it has ended. */
  async run({ code, env, number }: Cell): Promise<void> {
    await this.#write({ op: "run", code, env: { ...env }, number }).catch(() => {});
  }

  /**
   * Resolves with its next report, the same until `take` is called. Rejects with `InterpreterLost` if it has ended.
   */
  next(): Promise<CellEvent> {
    return (this.#next ??= this.#read());
  }

  take(): void {
    this.#next = undefined;
  }

  /** Asks the running cell to end. */
  interrupt(): void {
    this.#write({ op: "interrupt" }).catch(() => {});
  }

  /** Ends it, and everything that its code has started. Idempotent; never rejects. */
  async end(): Promise<void> {
    this.#lost ??= new InterpreterLost("The interpreter was ended");
    await this.#process.kill().catch(() => {});
    this.#writer.abort().catch(() => {});
    this.#frames.return().catch(() => {});
  }

  async #becomeReady(language: Language, cwd: string | undefined): Promise<true> {
    for (;;) {
      const { value: frame } = await this.#frames.next();
      if (!frame) throw await this.#ended();
      const report = reportOf(frame);
      if (report.event === "ready") return true;
      if (report.event === "ended") throw lostWith(report.exitCode);
      if (report.event !== "failed") continue;
      if (report.what === "program") {
        throw new InterpreterFailure(
          500,
          `The sandbox cannot run ${language.name} (${report.reason}): use a template with ${language.needs}`,
        );
      }
      throw new InterpreterFailure(500, `The working directory ${cwd ?? ""} cannot be entered: ${report.reason}`);
    }
  }

  async #read(): Promise<CellEvent> {
    if (this.#lost) throw this.#lost;
    try {
      for (;;) {
        const { value: frame } = await this.#frames.next();
        if (!frame) throw await this.#ended();
        const event = eventOf(frame);
        if (event) return event;
      }
    } catch (error) {
      const lost = error instanceof InterpreterLost ? error : new InterpreterLost("The interpreter broke its protocol");
      this.#lost ??= lost;
      throw lost;
    }
  }

  async #write(request: JsonObject): Promise<void> {
    try {
      await this.#writer.write(encodeFrame(request));
    } catch {
      throw this.#lost ?? (await this.#ended());
    }
  }

  async #ended(): Promise<InterpreterLost> {
    const exit = await this.#process.wait().catch(() => undefined);
    return lostWith(exit?.exitCode);
  }
}

type Report = z.infer<typeof reportSchema>;

/** @throws JsonLimitError, SyntaxError or ZodError if it is not valid. */
function reportOf({ text }: Frame): Report {
  return reportSchema.parse(parseJson(text, messageLimits));
}

/** `undefined`: it says nothing of a cell. */
function eventOf(frame: Frame): CellEvent | undefined {
  let report: Report;
  try {
    report = reportOf(frame);
  } catch (error) {
    if (error instanceof JsonLimitError) return { kind: "leftOut", reason: error.message };
    throw error;
  }
  switch (report.event) {
    case "stdout":
    case "stderr":
      return { kind: report.event, bytes: frame.data };
    case "message":
      return { kind: "message", message: report.message };
    case "left_out":
      return { kind: "leftOut", reason: `${report.bytes} bytes` };
    case "begun":
    case "done":
      return { kind: report.event };
    case "ended":
      throw lostWith(report.exitCode);
    default:
      return undefined;
  }
}

function lostWith(exitCode: number | undefined): InterpreterLost {
  const how = exitCode === undefined ? "" : ` with exit code ${exitCode}`;
  return new InterpreterLost(`The interpreter ended${how}`, exitCode);
}
