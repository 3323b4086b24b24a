import { createReadStream } from "node:fs";
import { UsageError } from "./usage-error.ts";

const mostBytes = 16_777_216;

/**
 * Reads a file, or standard input if its name is `-`.
 *
 * @throws UsageError if it cannot be read, or is larger than 16 MiB.
 */
export async function readText(file: string, signal: AbortSignal): Promise<string> {
  const name = file === "-" ? "standard input" : file;
  const stream = file === "-" ? process.stdin : createReadStream(file);
  const giveUp = (): void => void stream.destroy();
  signal.addEventListener("abort", giveUp, { once: true });
  const parts: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const part of stream) {
      const bytes: Uint8Array = Buffer.from(part);
      length += bytes.length;
      if (length > mostBytes) throw new UsageError(`${name} is larger than 16 MiB; pass only the code.`);
      parts.push(bytes);
    }
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UsageError) throw error;
    throw new UsageError(`Cannot read ${name}: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
  signal.throwIfAborted();
  return Buffer.concat(parts).toString("utf8");
}
