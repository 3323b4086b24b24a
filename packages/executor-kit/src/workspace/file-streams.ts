import { InvalidInputError, type ReadStreamOptions } from "@fenced/core";
import { followSignals, untilAborted } from "@fenced/core/abort";
import { checkOptions, optionsSchema, signalOption, wholeNumberOption, type OptionSchemas } from "@fenced/core/options";
import type * as z from "zod";
import type { ByteRange, FileWriter } from "./backend-files.ts";

const readStreamOptions: z.ZodType<ReadStreamOptions> = optionsSchema({
  start: wholeNumberOption({ from: 0, unit: "bytes" }).exactOptional(),
  end: wholeNumberOption({ from: 0, unit: "bytes" }).exactOptional(),
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<ReadStreamOptions>);

/** @throws InvalidInputError if an option is unknown or wrong. */
export function checkReadStreamOptions(options: ReadStreamOptions): ByteRange & { readonly signal?: AbortSignal } {
  const { start = 0, end = Infinity, ...rest } = checkOptions(readStreamOptions, options, "readStream");
  if (end >= start) return { start, end, ...rest };
  throw new InvalidInputError(`readStream: "end" (${end}) is less than "start" (${start})`, {
    remedy: "Both are offsets of bytes to read; leave `end` out to read to the end of the file.",
  });
}

/**
 * A stream from a source that is opened on the first read. Does not read ahead.
 *
 * @param signals - returns the signals that end it; called on the first read.
 */
export function readableFrom(
  open: () => Promise<AsyncIterable<Uint8Array>>,
  signals: () => readonly (AbortSignal | undefined)[],
): ReadableStream<Uint8Array> {
  const ending = new AbortController();
  let content: AsyncIterator<Uint8Array> | undefined;
  let unfollow: (() => void) | undefined;
  const leave = async (): Promise<void> => {
    unfollow?.();
    await content?.return?.();
  };
  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    content ??= (await open())[Symbol.asyncIterator]();
    return content.next();
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(stream) {
        if (!unfollow) {
          unfollow = followSignals(ending, signals());
          ending.signal.addEventListener("abort", () => {
            // Done even while nobody reads, so that the file is closed.
            stream.error(ending.signal.reason);
            void leave().catch(() => {});
          });
        }
        try {
          const step = await untilAborted(next(), ending.signal);
          if (step.done === true) {
            stream.close();
            unfollow();
          } else stream.enqueue(step.value);
        } catch (error) {
          void leave().catch(() => {});
          throw error;
        }
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
}

/**
 * A stream into a target that is opened on the first write, or on close. The writer waits for each piece.
 *
 * @param signal - returns the signal that ends it; called on first use.
 */
export function writableInto(open: () => Promise<FileWriter>, signal: () => AbortSignal): WritableStream<Uint8Array> {
  const ending = new AbortController();
  let file: FileWriter | undefined;
  let unfollow: (() => void) | undefined;
  const use = async (
    stream: WritableStreamDefaultController | undefined,
    action: (file: FileWriter) => Promise<void>,
  ): Promise<void> => {
    if (!unfollow) {
      unfollow = followSignals(ending, [signal()]);
      ending.signal.addEventListener("abort", () => {
        stream?.error(ending.signal.reason);
        void file?.abort();
      });
    }
    try {
      ending.signal.throwIfAborted();
      file ??= await open();
      await untilAborted(action(file), ending.signal);
    } catch (error) {
      unfollow();
      await file?.abort();
      throw error;
    }
  };
  return new WritableStream<Uint8Array>({
    async write(bytes, stream) {
      await use(stream, async (opened) => opened.write(asBytes(bytes)));
    },
    async close() {
      await use(undefined, (opened) => opened.close());
      unfollow?.();
    },
    async abort() {
      unfollow?.();
      await file?.abort();
    },
  });
}

function asBytes(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  throw new InvalidInputError("writeStream: only a Uint8Array can be written", {
    remedy: "Encode text first: `textStream.pipeThrough(new TextEncoderStream())`.",
  });
}
