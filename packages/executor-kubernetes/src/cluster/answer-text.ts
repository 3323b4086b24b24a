import type { IncomingMessage } from "node:http";
import { parseJson as parseJsonText } from "@fenced/core";

/**
 * The text of an answer: as much as arrives within `milliseconds`, and not much more than `longest` characters. A
 * truncated answer is not JSON.
 */
export async function textOf(answer: IncomingMessage, longest: number, milliseconds: number): Promise<string> {
  let text = "";
  const late = setTimeout(() => answer.destroy(), milliseconds);
  try {
    for await (const chunk of answer.setEncoding("utf8")) {
      text += String(chunk);
      if (text.length > longest) break;
    }
  } catch {
    // The caller works with what has arrived.
  } finally {
    clearTimeout(late);
  }
  return text;
}

/** Parses JSON within limits; returns `undefined` for anything else. */
export function parseJson(text: string): unknown {
  try {
    return parseJsonText(text);
  } catch {
    return undefined;
  }
}
