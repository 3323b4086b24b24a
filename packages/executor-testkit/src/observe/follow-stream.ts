import { AssertionError } from "node:assert/strict";
import type { CodeResult, ExecutionEvent } from "@fenced/core";

/** A stream that is read in the background. */
export interface FollowedStream {
  /** The events so far. */
  readonly events: readonly ExecutionEvent[];
  /** The stream's result; rejects with what the stream throws. */
  readonly result: Promise<CodeResult>;
  /** Resolves as soon as the text of the stream contains `text`; rejects if the stream ends without it. */
  seen(text: string): Promise<void>;
}

/** Reads a stream in the background, so that a test can act while it runs. */
export function followStream(stream: AsyncIterable<ExecutionEvent>): FollowedStream {
  const events: ExecutionEvent[] = [];
  const waiting = new Set<() => void>();
  const wakeAll = () => {
    for (const wake of waiting) wake();
  };
  let ended = false;
  const result = read(stream, (event) => {
    events.push(event);
    wakeAll();
  }).finally(() => {
    ended = true;
    wakeAll();
  });
  // A test may be interested only in the events and never use the result.
  result.catch(() => {});

  const seen = (text: string) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        const all = streamedText(events);
        if (!ended && !all.includes(text)) return;
        if (all.includes(text)) resolve();
        else reject(new AssertionError({ message: `the stream ended without ${JSON.stringify(text)}: ${all}` }));
        waiting.delete(look);
      };
      waiting.add(look);
      look();
    });
  return { events, result, seen };
}

async function read(
  stream: AsyncIterable<ExecutionEvent>,
  onEvent: (event: ExecutionEvent) => void,
): Promise<CodeResult> {
  let result: CodeResult | undefined;
  for await (const event of stream) {
    if (event.type === "result") result = event.result;
    onEvent(event);
  }
  if (result === undefined) throw new AssertionError({ message: "the stream ended without a result" });
  return result;
}

/** All streamed text of one kind, or of both kinds if none is given. */
export function streamedText(events: readonly ExecutionEvent[], kind?: "stdout" | "stderr"): string {
  let text = "";
  for (const event of events) {
    if ((event.type === "stdout" || event.type === "stderr") && (kind ?? event.type) === event.type) text += event.text;
  }
  return text;
}
