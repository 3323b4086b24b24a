import { Readable, Writable } from "node:stream";
import { joinSignals, untilAborted } from "@fenced/core/abort";
import type { SupervisorStreams } from "@fenced/executor-kit/supervisor";
import * as z from "zod";
import { envelope } from "../../envd/envelope.ts";
import { answerOf, problemIn } from "./answer-body.ts";
import type { SandboxAccess } from "./service-address.ts";
import { streamMessages } from "./stream-messages.ts";

/** Milliseconds within which a program must have been started, and within which input must have been taken. */
const [startMs, inputMs] = [60_000, 60_000];
/** Seconds between signs of life on a stream on which nothing else is sent. */
const keepaliveSeconds = "20";
/** Maximum bytes of input in one request. */
const longestInput = 1_048_576;
/** Bytes of messages that nobody has read, beyond which the rest is dropped. */
const longestMessages = 65_536;

const eventSchema = z.object({
  event: z.object({
    start: z.object({ pid: z.int() }).optional(),
    data: z.object({ stdout: z.string().optional(), stderr: z.string().optional() }).optional(),
    end: z.object({ status: z.string().optional(), error: z.string().optional() }).optional(),
  }),
});
type ProcessEvent = z.infer<typeof eventSchema>["event"];

/** The streams of a program in a sandbox. They end with the connection; the program goes on. */
export interface ProgramStreams extends SupervisorStreams {
  readonly stderr: Readable;
}

/**
 * Starts a program in a sandbox.
 *
 * @throws ServiceProblem if the service does not start it; the error of `fetch`; the signal's reason.
 */
export async function startProgram(
  sandbox: SandboxAccess,
  [cmd, ...args]: readonly [string, ...string[]],
  signal: AbortSignal,
): Promise<ProgramStreams> {
  const leaving = new AbortController();
  const starting = joinSignals(signal, AbortSignal.timeout(startMs));
  try {
    const response = await untilAborted(
      fetch(`${sandbox.url}/process.Process/Start`, {
        method: "POST",
        headers: {
          ...sandbox.headers,
          "content-type": "application/connect+json",
          "connect-protocol-version": "1",
          "keepalive-ping-interval": keepaliveSeconds,
        },
        body: envelope(0, { process: { cmd, args, envs: {} }, stdin: true }),
        redirect: "error",
        signal: leaving.signal,
      }),
      starting,
    );
    if (!response.ok || !response.body) throw await untilAborted(problemIn(response), starting);
    const events = processEvents(response.body);
    const first = await untilAborted(events.next(), starting);
    const pid = first.done === true ? undefined : first.value.start?.pid;
    if (pid === undefined) throw new Error("the service did not say which process it has started");
    return new Program(sandbox, { pid, events, leaving });
  } catch (error) {
    leaving.abort();
    throw error;
  }
}

async function* processEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ProcessEvent, void, void> {
  for await (const message of streamMessages(body)) yield eventSchema.parse(message).event;
}

interface StartedProgram {
  readonly pid: number;
  readonly events: AsyncGenerator<ProcessEvent, void, void>;
  /** Closes the connection. */
  readonly leaving: AbortController;
}

/** The two directions of one program: a stream of events, and a request for each piece of input. */
class Program implements ProgramStreams {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly #sandbox: SandboxAccess;
  readonly #started: StartedProgram;
  /** Continues when standard output is read. */
  #onRoom: () => void = () => {};

  constructor(sandbox: SandboxAccess, started: StartedProgram) {
    this.#sandbox = sandbox;
    this.#started = started;
    const leave = (error: Error | null, done: (error: Error | null) => void): void => {
      started.leaving.abort();
      this.#onRoom();
      done(error);
    };
    this.stdin = new Writable({
      // What was written while a request was under way goes in one.
      writev: (chunks, done) =>
        void this.#write(Buffer.concat(chunks.map(({ chunk }: { readonly chunk: Buffer }) => chunk)), done),
      destroy: leave,
    });
    this.stdout = new Readable({ read: () => this.#onRoom(), destroy: leave });
    this.stderr = new Readable({ read: () => {} });
    // They may fail before somebody listens.
    for (const stream of [this.stdin, this.stdout]) stream.on("error", () => {});
    void this.#receive();
  }

  async #receive(): Promise<void> {
    try {
      for await (const { data, end } of this.#started.events) {
        if (data?.stderr !== undefined) this.#tell(Buffer.from(data.stderr, "base64"));
        if (end) this.#tell(`\n${end.error ?? end.status ?? "it ended"}\n`);
        if (data?.stdout !== undefined) await this.#pass(Buffer.from(data.stdout, "base64"));
        if (this.stdout.destroyed) return;
      }
      this.stderr.push(null);
      this.stdout.push(null);
    } catch (error) {
      this.stderr.push(null);
      this.stdout.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async #pass(bytes: Buffer): Promise<void> {
    if (bytes.length === 0 || this.stdout.push(bytes) || this.stdout.destroyed) return;
    await new Promise<void>((resolve) => {
      this.#onRoom = resolve;
    });
  }

  #tell(message: Buffer | string): void {
    if (this.stderr.readableLength < longestMessages) this.stderr.push(message);
  }

  async #write(bytes: Buffer, done: (error?: Error) => void): Promise<void> {
    let failure: Error | undefined;
    try {
      await this.#send(bytes);
    } catch (error) {
      failure = error instanceof Error ? error : new Error(String(error));
    }
    done(failure);
  }

  /** One request at a time: nothing keeps the order of several. */
  async #send(bytes: Buffer): Promise<void> {
    const { pid, leaving } = this.#started;
    for (let from = 0; from < bytes.length; from += longestInput) {
      const stdin = bytes.toString("base64", from, from + longestInput);
      const response = await fetch(`${this.#sandbox.url}/process.Process/SendInput`, {
        method: "POST",
        headers: {
          ...this.#sandbox.headers,
          "content-type": "application/json",
          "connect-protocol-version": "1",
        },
        body: JSON.stringify({ process: { pid }, input: { stdin } }),
        redirect: "error",
        signal: joinSignals(leaving.signal, AbortSignal.timeout(inputMs)),
      });
      await answerOf(response);
    }
  }
}
