import { createHash } from "node:crypto";
import { z } from "zod";
import { parseJson } from "../parse-json.ts";
import type { RecordedRun } from "./run-record.ts";

/** The longest line of a record, in bytes. Longer ones are refused when they are read. */
export const longestLine = 131_072;
/** Bytes of JSON that a line keeps of each list, and of each other text. */
const [listBytes, textBytes] = [10_000, 1000];
/** Limit on the values of a line that is read. */
const mostValues = 50_000;

/** What stands before the first line. */
export const noLine: string = "0".repeat(64);

/** Where a line stands in its record. */
export interface LineHead {
  /** From 1. */
  readonly seq: number;
  /** SHA-256 of the whole line before, without its end; `noLine` for the first one. */
  readonly previous: string;
  /** What is between that line and this one: parts of lines that a program was writing when it died. */
  readonly torn?: { readonly lines: number; readonly sha256: string } | undefined;
}

const hash = z.string().regex(/^[\da-f]{64}$/);
const headSchema: z.ZodType<LineHead> = z.object({
  version: z.literal(1),
  seq: z.int().min(1),
  previous: hash,
  torn: z.object({ lines: z.int().min(1), sha256: hash }).optional(),
});

/** The head of a line; `undefined` if it is no line of a record. */
export function parseLine(line: Buffer): LineHead | undefined {
  try {
    return headSchema.parse(parseJson(line.toString(), { maxValues: mostValues }));
  } catch {
    return undefined;
  }
}

/** SHA-256 of a line, in hexadecimal. */
export function hashOf(line: Uint8Array): string {
  return createHash("sha256").update(line).digest("hex");
}

/** Writes a line, without its end. Lists and texts that are too long are cut, and `cut` says how many entries are missing. */
export function lineOf({ seq, previous, torn }: LineHead, run: RecordedRun): Buffer {
  const { blocks, changes, reached, refused, hostCalls, error, executor, ...rest } = run;
  const cut: Record<string, number> = {};
  const fit = <Entry>(name: string, list: readonly Entry[], shorten?: (entry: Entry) => Entry): Entry[] => {
    const kept = fitting(list, shorten);
    if (kept.length < list.length) cut[name] = list.length - kept.length;
    return kept;
  };
  const fitted = {
    executor: short(executor),
    ...rest,
    ...(error !== undefined && { error: short(error) }),
    blocks: fit("blocks", blocks, (block) => ({ ...block, language: short(block.language) })),
    ...(changes && {
      changes: {
        ...changes,
        created: fit("changes.created", changes.created),
        changed: fit("changes.changed", changes.changed),
        deleted: fit("changes.deleted", changes.deleted),
        risky: fit("changes.risky", changes.risky),
      },
    }),
    ...(reached && { reached: fit("reached", reached) }),
    ...(refused && { refused: fit("refused", refused) }),
    hostCalls: fit("hostCalls", hostCalls),
  };
  const isCut = Object.keys(cut).length > 0;
  const head = { version: 1, seq, time: new Date().toISOString(), previous, ...(torn && { torn }) };
  return Buffer.from(JSON.stringify({ ...head, ...fitted, ...(isCut && { cut }) }));
}

/** The first entries, as many as have room. */
function fitting<Entry>(list: readonly Entry[], shorten: (entry: Entry) => Entry = (entry) => entry): Entry[] {
  const kept: Entry[] = [];
  let left = listBytes;
  for (const entry of list) {
    const shortened = shorten(entry);
    left -= Buffer.byteLength(JSON.stringify(shortened)) + 1;
    if (left < 0) break;
    kept.push(shortened);
  }
  return kept;
}

function short(text: string): string {
  let kept = text.slice(0, textBytes);
  while (Buffer.byteLength(JSON.stringify(kept)) > textBytes) kept = kept.slice(0, kept.length / 2);
  return kept === text ? text : `${kept}…`;
}
