import { isDeepStrictEqual } from "node:util";
import type { ModelMessage } from "@fenced/core";
import type { RecordedRequest } from "./record-entry.ts";

const shown = 200;

/** Describes the end of a request, for error messages. */
export function describeLastMessage(messages: readonly ModelMessage[]): string {
  const last = messages.at(-1);
  return last === undefined ? "no message at all" : `the ${last.role} message ${excerpt(asText(last.content))}`;
}

/** Describes the first difference between two requests; `undefined` if they are equal. */
export function describeDifference(recorded: RecordedRequest, asked: RecordedRequest): string | undefined {
  const length = Math.max(recorded.messages.length, asked.messages.length);
  for (let index = 0; index < length; index++) {
    const [before, now] = [recorded.messages[index], asked.messages[index]];
    if (!isDeepStrictEqual(before, now)) return `message ${index + 1} is ${differing(before, now)}`;
  }
  if (!isDeepStrictEqual(recorded.tools, asked.tools)) return `its tools are ${differing(recorded.tools, asked.tools)}`;
  if (!isDeepStrictEqual(recorded.jsonSchema, asked.jsonSchema)) {
    return `its JSON schema is ${differing(recorded.jsonSchema, asked.jsonSchema)}`;
  }
  return undefined;
}

function differing(before: unknown, now: unknown): string {
  const [recorded, asked] = [asText(before), asText(now)];
  let same = 0;
  while (same < asked.length && asked[same] === recorded[same]) same++;
  return `${excerpt(asked, same)}, in the recording ${excerpt(recorded, same)}`;
}

function asText(value: unknown): string {
  return value === undefined ? "missing" : JSON.stringify(value);
}

/** The part of a long text around `place`. */
function excerpt(text: string, place = 0): string {
  const start = place < shown / 2 ? 0 : place - shown / 4;
  const piece = text.slice(start, start + shown);
  return `${start > 0 ? "…" : ""}${piece}${start + shown < text.length ? "…" : ""}`;
}
