import type { JsonValue } from "../../json-value.ts";
import { showHidden } from "../../text/show-hidden.ts";
import type { HostCall } from "./host-call.ts";

/**
 * A call as a person who approves it should see it: `remove({"id": 1})`. Characters that could hide a part of it on a screen are
 * written as `\u202e`, and of very long arguments the middle is left out, which the text says.
 */
export function describeHostCall({ name, input }: Pick<HostCall, "name" | "input">): string {
  return `${showHidden(name)}(${describeHostInput(input)})`;
}

/**
 * The arguments of a call as `describeHostCall` shows them: JSON.
 *
 * @param maxCharacters - of more, head and tail are shown. Default: 4,000.
 */
export function describeHostInput(input: JsonValue, maxCharacters = 4000): string {
  const text = showHidden(JSON.stringify(input), asJson);
  if (text.length <= maxCharacters) return text;
  const half = Math.floor(maxCharacters / 2);
  const head = text.slice(0, half).replace(/[\uD800-\uDBFF]$/, "");
  const tail = text.slice(text.length - half).replace(/^[\uDC00-\uDFFF]/, "");
  return `${head}[... ${text.length - head.length - tail.length} characters left out ...]${tail}`;
}

/** Still the same JSON. */
function asJson(character: string): string {
  return Array.from({ length: character.length }, (_, index) => {
    return `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`;
  }).join("");
}
