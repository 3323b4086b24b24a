import { BackendUnavailableError, InvalidInputError, isJsonValue, parseJson, type SessionHandle } from "@fenced/core";
import * as z from "zod";
import type { SessionMessage, SessionNote } from "./session-directory.ts";

/** Limits on what is stored of a session, in characters. */
const [longestKey, longestNote, longestLost] = [512, 65_536, 2_000];
/**
 * How long a record without a checkpoint is kept, in milliseconds: its user is told what was lost, and the key's next
 * token is higher.
 */
export const keptMs = 86_400_000;

const note: z.ZodType<SessionNote> = z.object({
  // The executor that connects checks the rest.
  handle: z.custom<SessionHandle>((value) => typeof value === "object" && isJsonValue(value)).exactOptional(),
  checkpoint: z
    .string()
    .regex(/^[\da-f]{64}$/)
    .exactOptional(),
  lost: z.string().max(longestLost).exactOptional(),
});
const message: z.ZodType<SessionMessage> = z.object({
  key: z.string().max(longestKey),
  event: z.enum(["hand-over", "end", "released"]),
});

/** The token of a hold, which engines return as text. */
export const storedToken: z.ZodType<number> = z
  .string()
  .regex(/^\d{1,16}$/)
  .transform(Number);

/** @throws InvalidInputError for a key that two engines might not tell from another one. */
export function checkKey(key: string): string {
  if (key.length <= longestKey && !/[\0\p{Surrogate}]/u.test(key)) return key;
  throw new InvalidInputError(
    `A directory of sessions has no keys of more than ${longestKey} characters, or with characters that are not valid Unicode`,
    { remedy: "Choose shorter keys, such as the ids of your users." },
  );
}

/** A note as text, and whether its record has to stay. */
export function storedNote({ lost, ...kept }: SessionNote): { readonly text: string; readonly isKept: boolean } {
  const text = JSON.stringify({ ...kept, lost: lost?.slice(0, longestLost) });
  if (text.length > longestNote) {
    throw new InvalidInputError(`The handle of a session has more than ${longestNote} characters`, {
      remedy: "Report it to the authors of the executor.",
    });
  }
  return { text, isKept: kept.checkpoint !== undefined || kept.handle !== undefined };
}

/** @throws BackendUnavailableError if it is not a note. */
export function readNote(text: string | null | undefined): SessionNote {
  return text === null || text === undefined || text === "" ? {} : parsed(note, text, longestNote);
}

/** A message from another process; `undefined` if it is something else. */
export function readMessage(text: string): SessionMessage | undefined {
  try {
    return parsed(message, text, longestKey * 8);
  } catch {
    return undefined;
  }
}

/** @throws BackendUnavailableError if what an engine answered is not what the directory's own statements answer. */
export function checkAnswer<T>(schema: z.ZodType<T>, answer: unknown): T {
  const checked = schema.safeParse(answer);
  if (checked.success) return checked.data;
  throw damaged(checked.error);
}

function parsed<T>(schema: z.ZodType<T>, text: string, longest: number): T {
  if (text.length > longest) throw damaged(new RangeError(`${text.length} characters`));
  try {
    return checkAnswer(schema, parseJson(text, { maxValues: 10_000 }));
  } catch (error) {
    throw damaged(error);
  }
}

function damaged(cause: unknown): BackendUnavailableError {
  return new BackendUnavailableError("The session directory has a record that it did not write", {
    remedy: "Give it a prefix or a table of its own, and delete the record.",
    cause,
  });
}
