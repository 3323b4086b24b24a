import { untilAborted } from "@fenced/core/abort";
import type { HeldBody } from "./read-body.ts";

/** What a response's body comes from. */
interface BodySource {
  readonly pieces: AsyncGenerator<Uint8Array, void, void>;
  /** Aborted when the sandbox has ended. */
  readonly ended: AbortSignal;
  /** To abort when the client has left. */
  readonly leaving: AbortController;
  /** The request's body, which is let go with the response. */
  readonly received: HeldBody | undefined;
}

/** A response's body, which breaks when the sandbox ends, by which clients notice that. */
export function breakingBody({ pieces, ended, leaving, received }: BodySource): ReadableStream<Uint8Array> {
  const next = async (): Promise<IteratorResult<Uint8Array, void>> => {
    try {
      // What gives the pieces may wait for something that the end of the sandbox does not end.
      return await untilAborted(pieces.next(), ended);
    } catch (error) {
      received?.[Symbol.dispose]();
      throw error;
    }
  };
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await next();
      if (done !== true) {
        controller.enqueue(value);
        return;
      }
      received?.[Symbol.dispose]();
      controller.close();
    },
    cancel() {
      received?.[Symbol.dispose]();
      leaving.abort();
      // What it holds is let go, also if it waits to be asked for more.
      pieces.return().catch(() => {});
    },
  });
}
