import { InvalidInputError } from "@fenced/core";
import { askOnTerminal } from "../common/ask-on-terminal.ts";
import type { SignalOptions } from "../common/signal-option.ts";

/** Asks on the standard streams and reads one line. Releases the streams before the promise settles. */
export async function readLine(prompt: string, options: SignalOptions): Promise<string> {
  const line = process.stdin.isTTY ? await askOnTerminal(prompt, options) : await askOnPipe(prompt, options);
  if (line !== undefined) return line;
  throw new InvalidInputError("Standard input ended before there was an answer", {
    remedy: "Run the program in a terminal, or set the option inputFunc of UserProxyAgent.",
  });
}

async function askOnPipe(prompt: string, { signal }: SignalOptions): Promise<string | undefined> {
  signal?.throwIfAborted();
  process.stdout.write(prompt);
  return readPipedLine(process.stdin, signal);
}

/**
 * Reads one line and leaves the rest in the stream for the next reader; readline would consume it.
 *
 * @returns the line without its line break; the rest of a stream that ends without one; `undefined` if nothing is left.
 */
function readPipedLine(stream: NodeJS.ReadStream, signal: AbortSignal | undefined): Promise<string | undefined> {
  if (stream.readableEnded || stream.destroyed) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const onData = (data: Buffer | string): void => {
      const chunk = Buffer.from(data);
      const end = chunk.indexOf("\n");
      if (end === -1) {
        chunks.push(chunk);
        return;
      }
      chunks.push(chunk.subarray(0, end));
      stopReading();
      if (end + 1 < chunk.length) stream.unshift(chunk.subarray(end + 1));
      resolve(Buffer.concat(chunks).toString().replace(/\r$/, ""));
    };
    const onEnd = (): void => {
      stopReading();
      resolve(chunks.length === 0 ? undefined : Buffer.concat(chunks).toString());
    };
    const onError = (error: unknown): void => {
      stopReading();
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- the caller's own reason, whatever it is
      reject(error);
    };
    const onAbort = (): void => onError(signal?.reason);
    const stopReading = (): void => {
      stream.off("data", onData).off("end", onEnd).off("error", onError).pause();
      signal?.removeEventListener("abort", onAbort);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    stream.on("data", onData).on("end", onEnd).on("error", onError).resume();
  });
}
