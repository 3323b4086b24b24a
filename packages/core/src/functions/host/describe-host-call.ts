import type { JsonValue } from "../../json-value.ts";
import { showHidden } from "../../text/show-hidden.ts";
import type { HostCall } from "./host-call.ts";

/**
 * Formats a call for the person who approves it: `remove({"id":1})`. Escapes characters that could hide part of it on a
 * screen (`\u202e`), and leaves out the middle of very long arguments, with a note that says so.
 */
export function describeHostCall({ name, input }: Pick<HostCall, "name" | "input">): string {
  return `${showHidden(name)}(${describeHostInput(input)})`;
}

/**
 * Formats a call's arguments as `describeHostCall` shows them: as JSON.
 *
 * @param maxCharacters - longer text keeps its head and tail. Default: 4,000.
 */
export function describeHostInput(input: JsonValue, maxCharacters = 4000): string {
  const text = showHidden(JSON.stringify(input), asJson);
  if (text.length <= maxCharacters) return text;
  const half = Math.floor(maxCharacters / 2);
  const head = text.slice(0, half).replace(/[\uD800-\uDBFF]$/, "");
  const tail = text.slice(text.length - half).replace(/^[\uDC00-\uDFFF]/, "");
  return `${head}[... ${text.length - head.length - tail.length} characters left out ...]${tail}`;
}

/** Escapes a character so that the text stays the same JSON value. */
function asJson(character: string): string {
  return Array.from({ length: character.length }, (_, index) => {
    return `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`;
  }).join("");
}
