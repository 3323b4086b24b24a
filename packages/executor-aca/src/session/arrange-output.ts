import type { BlockEvent } from "@fenced/executor-kit";
import { readLog, type LogRecord } from "./output-log.ts";

/** The service's answer, and access to the log of the same block. */
export interface BlockText {
  readonly stdout: string;
  readonly stderr: string;
  /** How many bytes of each stream were requested; a stream of that length was truncated. */
  readonly maxOutput: number;
  /** `undefined` if there is no log. */
  readonly openLog: (() => Promise<AsyncIterable<Uint8Array>>) | undefined;
}

type TextEvent = Extract<BlockEvent, { readonly type: "stdout" | "stderr" }>;
type PerStream<T> = Readonly<Record<"stdout" | "stderr", T>>;
type Answered = PerStream<Buffer>;

const streams = ["stdout", "stderr"] as const;

/** The service's default and highest limits: output of that length may have been cut there, whatever was requested. */
const [defaultLimit, highestLimit] = [4096, 1_048_576];
/** Bytes of a log that are held until both streams have been compared. */
const mostCompared = 64 * 1024 * 1024;
/** Bytes that the service also leaves out if its limit falls within a character. */
const mostOfCharacter = 3;

/**
 * Yields what a block printed. The answer has the two streams separately and, if they are long, only their
 * beginnings; where that matters, the log has the order and the rest. Output that did not pass through the log, such
 * as that of child processes, is only in the answer: if the two disagree, the answer wins.
 *
 * @returns whether something is missing.
 */
export async function* arrangeOutput(text: BlockText): AsyncGenerator<TextEvent, boolean> {
  const answered = { stdout: Buffer.from(text.stdout), stderr: Buffer.from(text.stderr) };
  const lengths = [answered.stdout.length, answered.stderr.length];
  const mayBeCut = {
    stdout: reachesLimit(answered.stdout, text.maxOutput),
    stderr: reachesLimit(answered.stderr, text.maxOutput),
  };
  const isLong = lengths.some((length) => length >= defaultLimit - mostOfCharacter);
  const needsLog = lengths.every((length) => length > 0) || isLong;
  const log = needsLog ? await text.openLog?.().catch(() => undefined) : undefined;
  if (!log) {
    yield* remainder(answered, { stdout: 0, stderr: 0 });
    return mayBeCut.stdout || mayBeCut.stderr;
  }
  return yield* fromLog(readLog(log), answered, mayBeCut);
}

function reachesLimit({ length }: Buffer, maxOutput: number): boolean {
  if (length >= maxOutput - mostOfCharacter) return true;
  return [defaultLimit, highestLimit].some((limit) => length >= limit - mostOfCharacter && length <= limit);
}

async function* fromLog(
  records: AsyncGenerator<LogRecord, void>,
  answered: Answered,
  mayBeCut: PerStream<boolean>,
): AsyncGenerator<TextEvent, boolean> {
  const comparison = await compare(records, answered);
  if (!comparison) {
    await records.return();
    yield* remainder(answered, { stdout: 0, stderr: 0 });
    return mayBeCut.stdout || mayBeCut.stderr;
  }
  yield* comparison.events;
  yield* remainder(answered, comparison.seen);
  try {
    for await (const record of records) {
      if (record.type === "cut") return true;
      yield record;
    }
    // The log has what the service cut off, unless the end of the answer did not pass through it.
    const goesOn = (type: "stdout" | "stderr"): boolean => answered[type].length > comparison.seen[type];
    return comparison.cut || streams.some((type) => mayBeCut[type] && goesOn(type));
  } catch {
    // The connection broke while the rest was read.
    return true;
  }
}

interface Comparison {
  /** The log as far as it was read: until it covered the whole answer, or to its end. */
  readonly events: readonly TextEvent[];
  /** Bytes of each stream that the log and the answer share. */
  readonly seen: PerStream<number>;
  readonly cut: boolean;
}

/** Reads the log as long as the answer has something to compare; `undefined` if the two do not match. */
async function compare(records: AsyncGenerator<LogRecord, void>, answered: Answered): Promise<Comparison | undefined> {
  const events: TextEvent[] = [];
  const seen = { stdout: 0, stderr: 0 };
  const isCovered = (): boolean => seen.stdout >= answered.stdout.length && seen.stderr >= answered.stderr.length;
  try {
    while (!isCovered()) {
      const { done, value } = await records.next();
      if (done === true) return { events, seen, cut: false };
      if (value.type === "cut") return { events, seen, cut: true };
      const bytes = Buffer.from(value.data);
      const expected = answered[value.type].subarray(seen[value.type], seen[value.type] + bytes.length);
      if (!bytes.subarray(0, expected.length).equals(expected)) return undefined;
      // This stream continues beyond the cut while the other one is still being compared.
      seen[value.type] += bytes.length;
      events.push({ type: value.type, data: bytes });
      if (seen.stdout + seen.stderr > mostCompared) return { events, seen, cut: true };
    }
    return { events, seen, cut: false };
  } catch {
    return undefined;
  }
}

/** The rest of the answer: all of it, or the part that is not in the log, such as a traceback. */
function* remainder(answered: Answered, seen: PerStream<number>): Generator<TextEvent, void> {
  for (const type of streams) {
    const left = answered[type].subarray(seen[type]);
    if (left.length > 0) yield { type, data: left };
  }
}
