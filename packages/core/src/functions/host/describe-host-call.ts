import { sanitizeTerminalText } from "../../text/sanitize-terminal-text.ts";
import type { HostCall } from "./host-call.ts";

/** Characters of a call that are shown; of more, head and tail. */
const mostShown = 4000;

/**
 * A call as a person who approves it should see it: `remove({"id": 1})`. What could hide a part of it on a screen is taken out, and
 * of very long arguments the middle is left out, which the text says.
 */
export function describeHostCall({ name, input }: Pick<HostCall, "name" | "input">): string {
  const text = sanitizeTerminalText(JSON.stringify(input));
  const left = text.length - mostShown;
  const half = mostShown / 2;
  const shown = left <= 0 ? text : `${text.slice(0, half)}[... ${left} characters left out ...]${text.slice(-half)}`;
  return `${sanitizeTerminalText(name)}(${shown})`;
}
