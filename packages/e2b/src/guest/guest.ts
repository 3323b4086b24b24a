import { readFileSync } from "node:fs";
import { type ExecutorProcesses, isJsonValue, type JsonObject, parseJson, type WritableProcess } from "@fenced/core";
import { within } from "@fenced/core/abort";
import { watchingText } from "@fenced/executor-kit/interpreter";
import * as z from "zod";
import { ConnectError, isConnectCode } from "../envd/connect-error.ts";
import { encodeFrame, type Frame, readFrames } from "./frames.ts";
import { serverProgram } from "./server-programs.ts";
import { WatchedEvents } from "./watched-events.ts";

const guestProgram: string = watchingText(readFileSync(new URL("./guest.py", import.meta.url), "utf8"));

/** How long a request may take in milliseconds: a file system in the sandbox may never answer. */
const patienceMs = 60_000;
/** How long it may then take to say that it runs at all. */
const probeMs = 5000;
/** Requests that may wait for an answer at the same time, and of whose late answers nobody wants to know. */
const [mostWaiting, mostLate] = [256, 256];

const answerSchema = z.object({
  id: z.number(),
  ok: z.record(z.string(), z.unknown()).optional(),
  event: z
    .custom<JsonObject>((value) => typeof value === "object" && !Array.isArray(value) && isJsonValue(value))
    .optional(),
  error: z.object({ code: z.string(), message: z.string(), errno: z.string().optional() }).optional(),
});
type GuestAnswer = z.infer<typeof answerSchema> & { readonly data: Uint8Array };

/** What a request for the guest receives. */
interface Waiting {
  /** @param bytes - the length of the answer's text. */
  readonly take: (answer: GuestAnswer, bytes: number) => void;
  readonly fail: (error: Error) => void;
}

/** A directory that is watched. The first event says that it is. */
export interface WatchedDirectory {
  readonly events: WatchedEvents;
  /** Ends the watching. Idempotent. */
  readonly close: () => void;
}

/** The disk of the sandbox is full. */
export class NoSpaceError extends ConnectError {}

/**
 * The program in a sandbox that serves its files. It is one of the sandbox's own programs, so code there can end it or
 * write in its place: its answers are checked like those of a stranger, and can only be wrong about that sandbox.
 */
export class Guest {
  readonly #process: WritableProcess;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting = new Map<number, Waiting>();
  /** Requests that were given up, and watches that were closed, until the guest has answered them. */
  readonly #late = new Set<number>();
  #last = 0;
  #answers = 0;
  #gone: ConnectError | undefined;

  private constructor(process: WritableProcess) {
    this.#process = process;
    this.#writer = process.stdin.getWriter();
    this.#writer.closed.catch(() => {});
    void this.#read();
    void discard(process.stderr);
  }

  /** Starts it; it is not known yet whether it runs. */
  static async start(processes: ExecutorProcesses): Promise<Guest> {
    return new Guest(await processes.start({ command: serverProgram(guestProgram), stdin: true }));
  }

  /** It has ended, so another one is needed. */
  get isGone(): boolean {
    return this.#gone !== undefined;
  }

  /**
   * Sends a request.
   *
   * @throws ConnectError if it fails, or there is no answer within a minute.
   */
  async request<T>(
    operation: string,
    parameters: JsonObject,
    schema: z.ZodType<T>,
    data?: Uint8Array,
  ): Promise<{ readonly result: T; readonly data: Uint8Array }> {
    const [id, before] = [this.#next(), this.#answers];
    const answer = await within(patienceMs, this.#send(id, { ...parameters, op: operation }, data));
    if (!answer) {
      this.#giveUp(id);
      if (this.#answers === before) await this.#probe();
      throw late();
    }
    const result = schema.safeParse(answer.ok);
    if (!result.success) throw invalidAnswer();
    return { result: result.data, data: answer.data };
  }

  /**
   * Watches a directory until it is closed.
   *
   * @throws ConnectError if it cannot be watched.
   */
  async watchDirectory(parameters: JsonObject): Promise<WatchedDirectory> {
    const [events, id] = [new WatchedEvents(), this.#next()];
    const close = (): void => {
      events.end();
      if (!this.#waiting.has(id)) return;
      this.#giveUp(id);
      if (!this.#gone) void this.request("unwatch", { watch: id }, z.unknown()).catch(() => {});
    };
    this.#register(id, {
      take: ({ event }, bytes) => {
        if (event) {
          events.push(event, bytes);
          if (events.hasEnded) close();
        } else {
          this.#waiting.delete(id);
          events.end();
        }
      },
      fail: (error) => {
        this.#waiting.delete(id);
        events.end(error);
      },
    });
    try {
      await this.#write(encodeFrame({ ...parameters, id, op: "watch" }));
      if (!(await within(patienceMs, events.arrival()))) {
        await this.#probe();
        throw late();
      }
      events.take();
      return { events, close };
    } catch (error) {
      close();
      throw error;
    }
  }

  /** Yields what happens in a directory, first of all that it is watched, until the signal is aborted. */
  async *watch(parameters: JsonObject, signal: AbortSignal): AsyncGenerator<JsonObject, void, void> {
    const { events, close } = await this.watchDirectory(parameters);
    signal.addEventListener("abort", close);
    try {
      yield { started: true };
      if (!signal.aborted) yield* events.read();
    } finally {
      signal.removeEventListener("abort", close);
      close();
    }
  }

  #send(id: number, message: JsonObject, data?: Uint8Array): Promise<GuestAnswer> {
    return new Promise((resolve, reject) => {
      this.#register(id, {
        take: (answer) => {
          this.#waiting.delete(id);
          resolve(answer);
        },
        fail: (error) => {
          this.#waiting.delete(id);
          reject(error);
        },
      });
      this.#write(encodeFrame({ ...message, id }, data)).catch(reject);
    });
  }

  /** Frees what a request keeps here. The guest may still be busy with it, so too many of these end the guest. */
  #giveUp(id: number): void {
    this.#waiting.delete(id);
    this.#late.add(id);
    if (this.#late.size > mostLate) this.#end(late());
  }

  /** Ends a guest that does not run, because code has stopped it: another one is started then. */
  async #probe(): Promise<void> {
    const id = this.#next();
    try {
      if (await within(probeMs, this.#send(id, { op: "hello" }))) return;
    } catch {
      // It has ended.
    }
    this.#end(late());
  }

  #register(id: number, waiting: Waiting): void {
    if (this.#gone) throw this.#gone;
    if (this.#waiting.size >= mostWaiting) {
      throw new ConnectError("resource_exhausted", "Too many requests for the sandbox's files are waiting");
    }
    this.#waiting.set(id, waiting);
  }

  #next(): number {
    this.#last += 1;
    return this.#last;
  }

  async #write(frame: Uint8Array): Promise<void> {
    try {
      await this.#writer.write(frame);
    } catch (cause) {
      throw this.#gone ?? new ConnectError("unavailable", "The sandbox's file service has ended", { cause });
    }
  }

  async #read(): Promise<void> {
    try {
      for await (const frame of readFrames(this.#process.stdout)) this.#take(frame);
    } catch {
      this.#end(invalidAnswer());
      return;
    }
    const exit = await this.#process.wait().catch(() => undefined);
    this.#end(endedWith(exit?.exitCode));
  }

  /** Fails everything that waits, and lets nothing of the guest be left. */
  #end(reason: ConnectError): void {
    if (this.#gone) return;
    this.#gone = reason;
    for (const { fail } of this.#waiting.values()) fail(reason);
    this.#late.clear();
    this.#process.kill().catch(() => {});
    this.#writer.abort(reason).catch(() => {});
  }

  #take({ text, data }: Frame): void {
    const answer = answerSchema.parse(parseJson(text));
    this.#answers += 1;
    const waiting = this.#waiting.get(answer.id);
    if (!waiting) this.#takeLate(answer);
    else if (answer.error) waiting.fail(errorOf(answer.error));
    else waiting.take({ ...answer, data }, text.length);
  }

  /** @throws Error if it answers nothing that was asked. */
  #takeLate({ id, ok, event }: z.infer<typeof answerSchema>): void {
    if (!this.#late.has(id)) throw new Error("an answer to nothing");
    if (event) return;
    this.#late.delete(id);
    // Nobody else knows of the file that it has opened meanwhile.
    const opened = z.object({ handle: z.int() }).safeParse(ok);
    if (opened.success) void this.request("close", opened.data, z.unknown()).catch(() => {});
  }
}

function errorOf({ code, message, errno }: NonNullable<GuestAnswer["error"]>): ConnectError {
  if (errno === "ENOSPC" || errno === "EDQUOT") return new NoSpaceError("resource_exhausted", message);
  return new ConnectError(isConnectCode(code) ? code : "internal", message);
}

function late(): ConnectError {
  return new ConnectError("deadline_exceeded", "The file system of the sandbox did not answer in time");
}

/** What the guest sent cannot be the answer. */
export function invalidAnswer(): ConnectError {
  return new ConnectError("internal", "The sandbox's file service sent something that is not an answer");
}

function endedWith(exitCode: number | undefined): ConnectError {
  const why =
    exitCode === 126 || exitCode === 127
      ? "The template has no python3, which serves its files: add Python 3.8 or later to its image"
      : "The sandbox's file service has ended; try again";
  return new ConnectError("unavailable", why);
}

async function discard(stream: ReadableStream<Uint8Array>): Promise<void> {
  await stream.cancel().catch(() => {});
}
