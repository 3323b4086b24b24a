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
  const outputs = [new Output(handle.resize ? "pty" : "stdout", handle.stdout), new Output("stderr", handle.stderr)];
  const leave = (): void => {
    for (const output of outputs) output.leave();
  };
  // Also if nobody ever asks for an event.
  reading.signal.addEventListener("abort", leave, { once: true });
  if (reading.signal.aborted) leave();
  return readEvents(handle, outputs, { ...reading, leave });
}

type ReadHandle = Pick<ConnectedProcess, "stdout" | "stderr" | "wait" | "resize">;

async function* readEvents(
  handle: ReadHandle,
  outputs: readonly Output[],
  { signal, endOf, leave }: EventReading & { readonly leave: () => void },
): AsyncGenerator<ProcessEvent, void, void> {
  try {
    for (let open = outputs; open.length > 0;) {
      const { output, bytes } = await Promise.race(open.map((each) => each.next()));
      if (signal.aborted) return;
      output.took();
      if (!bytes) {
        open = open.filter((each) => each !== output);
        continue;
      }
      const lateness = new AbortController();
      const settle = afterMs(patienceMs, () => {
        lateness.abort();
        leave();
      });
      yield { kind: output.kind, bytes };
      settle();
      if (lateness.signal.aborted) {
        throw new ConnectError("resource_exhausted", "The output was not read for a minute; connect again");
      }
    }
    yield endOf(await exitOf(handle));
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

async function exitOf(handle: Pick<ConnectedProcess, "wait">): Promise<ProcessExit> {
  try {
    return await handle.wait();
  } catch (cause) {
    throw new ConnectError("unavailable", "The sandbox has ended", { cause });
  }
}

/** One output of a process: asked for one piece at a time, so that the process waits for a slow reader. */
class Output {
  readonly kind: "stdout" | "stderr" | "pty";
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #next: Promise<{ readonly output: Output; readonly bytes: Uint8Array | undefined }> | undefined;

  constructor(kind: "stdout" | "stderr" | "pty", stream: ReadableStream<Uint8Array>) {
    this.kind = kind;
    this.#reader = stream.getReader();
  }

  /** The next piece; `undefined` if there is none. The same one until it was taken. */
  async next(): Promise<{ readonly output: Output; readonly bytes: Uint8Array | undefined }> {
    this.#next ??= this.#reader.read().then(({ value }) => ({ output: this, bytes: value }));
    return this.#next;
  }

  /** Call this when the piece was taken. */
  took(): void {
    this.#next = undefined;
  }

  leave(): void {
    this.#reader.cancel().catch(() => {});
  }
}
