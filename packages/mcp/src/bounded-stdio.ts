import type { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import type { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { ReadBuffer } from "@modelcontextprotocol/sdk/shared/stdio.js";
import { MessageMeter } from "./message-limits.ts";

const lineFeed = 10;

/**
 * Makes a transport over standard streams close when a message has too many values, as it does when one has too many
 * bytes. The SDK would parse and check them all: 10 MiB of `{},` take more than 4 GB of memory.
 *
 * @returns why it was closed, if it was for that.
 */
export function boundMessages(transport: StdioClientTransport | StdioServerTransport): {
  readonly excess: Error | undefined;
} {
  // Both read through this field, and the SDK has no option for it. The tests of both notice if that changes.
  const buffer = new BoundedBuffer();
  Reflect.set(transport, "_readBuffer", buffer);
  return buffer;
}

class BoundedBuffer extends ReadBuffer {
  readonly #meter = new MessageMeter();

  get excess(): RangeError | undefined {
    return this.#meter.excess;
  }

  override append(chunk: Buffer): void {
    for (const byte of chunk) {
      this.#meter.add(byte);
      if (byte === lineFeed) this.#meter.next();
    }
    if (this.excess === undefined) {
      super.append(chunk);
      return;
    }
    this.clear();
    throw this.excess;
  }
}
