import { readFileSync } from "node:fs";
import {
  type ExecutorProcesses,
  isJsonValue,
  type JsonObject,
  parseJson,
  type RunningProcess,
  type WritableProcess,
} from "@fenced/core";
import { within } from "@fenced/core/abort";
import * as z from "zod";
import { ConnectError, isConnectCode } from "../envd/connect-error.ts";
import { encodeFrame, type Frame, readFrames } from "./frames.ts";
import { WatchedEvents } from "./watched-events.ts";

const guestProgram: string = readFileSync(new URL("./guest.py", import.meta.url), "utf8");

/** How long a request may take in milliseconds: a file system in the sandbox may never answer. */
const patienceMs = 60_000;
/** Requests that may wait for an answer at the same time. */
const mostWaiting = 256;

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
  readonly take: (answer: GuestAnswer) => void;
  readonly fail: (error: Error) => void;
}

/** The disk of the sandbox is full. */
export class NoSpaceError extends ConnectError {}

/**
 * The program in a sandbox that serves its files. It is one of the sandbox's own programs, so code there can end it or
 * write in its place: its answers are checked like those of a stranger, and can only be wrong about that sandbox.
 */
export class Guest {
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;
  #gone: ConnectError | undefined;

  private constructor(process: WritableProcess) {
    this.#writer = process.stdin.getWriter();
    void this.#read(process);
    void discard(process.stderr);
  }

  /** Starts it; it is not known yet whether it runs. */
  static async start(processes: ExecutorProcesses): Promise<Guest> {
    return new Guest(await processes.start({ command: ["python3", "-ISc", guestProgram], stdin: true }));
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
    const answer = await within(patienceMs, this.#send(operation, parameters, data));
    if (!answer) throw new ConnectError("deadline_exceeded", "The file system of the sandbox did not answer in time");
    const result = schema.safeParse(answer.ok);
    if (!result.success) throw invalid();
    return { result: result.data, data: answer.data };
  }

  /** Yields what happens in a directory, first of all that it is watched, until the signal is aborted. */
  async *watch(parameters: JsonObject, signal: AbortSignal): AsyncGenerator<JsonObject, void, void> {
    const [events, id] = [new WatchedEvents(), this.#next()];
    this.#register(id, {
      take: ({ event }) => (event ? events.push(event) : events.end()),
      fail: (error) => events.end(error),
    });
    const stop = (): void => events.end();
    signal.addEventListener("abort", stop);
    try {
      await this.#write(encodeFrame({ ...parameters, id, op: "watch" }));
      if (!signal.aborted) yield* events.read();
    } finally {
      signal.removeEventListener("abort", stop);
      this.#waiting.delete(id);
      if (!this.#gone) void this.request("unwatch", { watch: id }, z.unknown()).catch(() => {});
    }
  }

  #send(operation: string, parameters: JsonObject, data?: Uint8Array): Promise<GuestAnswer> {
    const id = this.#next();
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
      this.#write(encodeFrame({ ...parameters, id, op: operation }, data)).catch(reject);
    });
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

  async #read(process: RunningProcess): Promise<void> {
    let invalidity: ConnectError | undefined;
    try {
      for await (const frame of readFrames(process.stdout)) this.#take(frame);
    } catch {
      invalidity = invalid();
      await process.kill().catch(() => {});
    }
    const exit = await process.wait().catch(() => undefined);
    this.#gone = invalidity ?? endedWith(exit?.exitCode);
    for (const { fail } of this.#waiting.values()) fail(this.#gone);
  }

  #take({ text, data }: Frame): void {
    const answer = answerSchema.parse(parseJson(text));
    const waiting = this.#waiting.get(answer.id);
    if (!answer.error) waiting?.take({ ...answer, data });
    else waiting?.fail(errorOf(answer.error));
  }
}

function errorOf({ code, message, errno }: NonNullable<GuestAnswer["error"]>): ConnectError {
  if (errno === "ENOSPC" || errno === "EDQUOT") return new NoSpaceError("resource_exhausted", message);
  return new ConnectError(isConnectCode(code) ? code : "internal", message);
}

function invalid(): ConnectError {
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
