import type { ConnectedProcess, ProcessExit } from "@fenced/core";
import { afterMs } from "@fenced/core/abort";
import { ConnectError } from "./connect-error.ts";

/** What a process writes, and how it ends. */
export type ProcessEvent =
  | { readonly kind: "stdout" | "stderr" | "pty"; readonly bytes: Uint8Array }
  | {
      readonly kind: "end";
      readonly exitCode: number;
      readonly exited: boolean;
      readonly status: string;
      readonly error?: string;
    };

/** How long a process waits for a reader that does not read, in milliseconds; it then goes on without that reader. */
const patienceMs = 60_000;

/** How the events of a process are read. */
interface EventReading {
  /** Ends the reading, but not the process. */
  readonly signal: AbortSignal;
  /** Says how the process ended. @throws ConnectError if it did not end by itself or a signal. */
  readonly endOf: (exit: ProcessExit) => ProcessEvent;
}

/**
 * Yields what a process writes, and its end. Once this is over, the process goes on without these streams.
 *
 * @throws ConnectError if the process ended otherwise.
 */
export function processEvents(handle: ReadHandle, reading: EventReading): AsyncGenerator<ProcessEvent, void, void> {
  const outputs = new Outputs(handle);
  // Also if nobody ever asks for an event.
  reading.signal.addEventListener("abort", outputs.leave, { once: true });
  if (reading.signal.aborted) outputs.leave();
  return readEvents(handle, outputs, reading);
}

type ReadHandle = Pick<ConnectedProcess, "stdout" | "stderr" | "wait" | "resize">;

async function* readEvents(
  handle: ReadHandle,
  outputs: Outputs,
  { signal, endOf }: EventReading,
): AsyncGenerator<ProcessEvent, void, void> {
  try {
    for (;;) {
      const piece = await outputs.next();
      if (signal.aborted) return;
      if (!piece) break;
      const lateness = new AbortController();
      const settle = afterMs(patienceMs, () => {
        lateness.abort();
        outputs.leave();
      });
      yield piece;
      settle();
      if (lateness.signal.aborted) {
        throw new ConnectError("resource_exhausted", "The output was not read for a minute; connect again");
      }
    }
    yield endOf(await exitOf(handle));
  } finally {
    signal.removeEventListener("abort", outputs.leave);
    outputs.leave();
  }
}

async function exitOf(handle: Pick<ConnectedProcess, "wait">): Promise<ProcessExit> {
  try {
    return await handle.wait();
  } catch (cause) {
    throw new ConnectError("unavailable", "The sandbox has ended", { cause });
  }
}

/** A piece of an output that has arrived, or the output's end. */
type Arrival = { readonly output: Output; readonly bytes: Uint8Array | undefined } | { readonly error: unknown };

interface Output {
  readonly kind: "stdout" | "stderr" | "pty";
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
}

/**
 * The outputs of a process: each is asked for one piece at a time, so that the process waits for a slow reader. No race of
 * promises: that of an output which stays silent would keep every piece of the other one in memory.
 */
class Outputs {
  readonly #all: readonly Output[];
  /** Those that are to be asked for their next piece. */
  #idle: readonly Output[];
  readonly #arrived: Arrival[] = [];
  #open: number;
  #wake: () => void = () => {};

  constructor({ resize, stdout, stderr }: ReadHandle) {
    this.#all = [
      { kind: resize ? "pty" : "stdout", reader: stdout.getReader() },
      { kind: "stderr", reader: stderr.getReader() },
    ];
    this.#idle = this.#all;
    this.#open = this.#all.length;
  }

  /** The next piece of any of them; `undefined` once all have ended. @throws their error. */
  async next(): Promise<{ readonly kind: Output["kind"]; readonly bytes: Uint8Array } | undefined> {
    while (this.#open > 0) {
      for (const output of this.#idle) void this.#ask(output);
      this.#idle = [];
      const arrival = this.#arrived.shift();
      if (!arrival) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      } else if ("error" in arrival) {
        throw arrival.error;
      } else if (arrival.bytes) {
        this.#idle = [arrival.output];
        return { kind: arrival.output.kind, bytes: arrival.bytes };
      } else {
        this.#open -= 1;
      }
    }
    return undefined;
  }

  /** Asks for nothing more. */
  readonly leave = (): void => {
    for (const { reader } of this.#all) reader.cancel().catch(() => {});
  };

  async #ask(output: Output): Promise<void> {
    try {
      const { value } = await output.reader.read();
      this.#arrived.push({ output, bytes: value });
    } catch (error) {
      this.#arrived.push({ error });
    }
    this.#wake();
  }
}
