import { within } from "@fenced/core/abort";
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

/** Bytes that wait for a reader before the process has to wait. */
const roomBytes = 1_048_576;
/** What a piece takes besides its bytes: a process may write one byte at a time. */
const pieceBytes = 256;
/** How long a process waits for a reader that does not read, in milliseconds; it then goes on without that reader. */
const patienceMs = 60_000;

/** One reader of a process's output. */
interface Reader {
  readonly events: ProcessEvent[];
  bytes: number;
  readonly wake: () => void;
  /** It was too slow. */
  isLeft: boolean;
}

/** The output of a process for any number of readers. What is written while there are none is dropped, as E2B does. */
export class ProcessOutput {
  readonly #readers = new Set<Reader>();
  #end: ProcessEvent | ConnectError | undefined;
  /** Both outputs of a process may wait at the same time. */
  readonly #onRoom = new Set<() => void>();

  /** Resolves when all readers have room for more. */
  async write(event: ProcessEvent & { readonly bytes: Uint8Array }): Promise<void> {
    for (const reader of this.#readers) {
      reader.events.push(event);
      reader.bytes += event.bytes.length + pieceBytes;
      reader.wake();
    }
    while (!this.#hasRoom) {
      const isRead = new Promise<true>((resolve) => {
        this.#onRoom.add(() => resolve(true));
      });
      if ((await within(patienceMs, isRead)) === undefined) this.#leaveSlow();
    }
  }

  /** Ends the output of all readers, also of those that come later. */
  end(end: ProcessEvent | ConnectError): void {
    this.#end = end;
    for (const { wake } of this.#readers) wake();
  }

  /**
   * Yields what is written from now on, and the end. Reading begins at once, before the first event is asked for.
   *
   * @throws ConnectError if the process ended otherwise.
   */
  read(signal: AbortSignal): AsyncGenerator<ProcessEvent, void, void> {
    let wake: () => void = () => {};
    const reader: Reader = { events: [], bytes: 0, isLeft: false, wake: () => wake() };
    if (!signal.aborted) this.#readers.add(reader);
    const leave = (): void => {
      this.#readers.delete(reader);
      this.#tellWriters();
      wake();
    };
    signal.addEventListener("abort", leave, { once: true });
    const wait = (): Promise<void> =>
      new Promise((resolve) => {
        wake = resolve;
        if (signal.aborted) resolve();
      });
    return this.#events(reader, { wait, signal, leave });
  }

  async *#events(
    reader: Reader,
    { wait, signal, leave }: { wait: () => Promise<void>; signal: AbortSignal; leave: () => void },
  ): AsyncGenerator<ProcessEvent, void, void> {
    try {
      while (!signal.aborted) {
        const event = reader.events.shift();
        if (event) {
          if ("bytes" in event) reader.bytes -= event.bytes.length + pieceBytes;
          this.#tellWriters();
          yield event;
        } else if (reader.isLeft) {
          throw new ConnectError("resource_exhausted", "The output was not read for a minute; connect to it again");
        } else if (this.#end instanceof ConnectError) throw this.#end;
        else if (this.#end) {
          yield this.#end;
          return;
        } else await wait();
      }
    } finally {
      signal.removeEventListener("abort", leave);
      leave();
    }
  }

  #tellWriters(): void {
    for (const tell of this.#onRoom) tell();
    this.#onRoom.clear();
  }

  get #hasRoom(): boolean {
    return [...this.#readers].every(({ bytes }) => bytes < roomBytes);
  }

  #leaveSlow(): void {
    for (const reader of this.#readers) {
      if (reader.bytes < roomBytes) continue;
      reader.isLeft = true;
      reader.events.length = 0;
      this.#readers.delete(reader);
      reader.wake();
    }
  }
}
