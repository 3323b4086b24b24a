import { InvalidInputError } from "@fenced/core";
import type { CodeExecutionToolOptions } from "./code-execution-tool-options.ts";

const limits = [
  "maxOutputCharacters",
  "maxImages",
  "maxImageBytes",
  "progressIntervalMs",
  "maxProgressCharacters",
] as const;

/** Milliseconds that a timer can wait: of more, Node makes one. */
const longestTimer = 2_147_483_647;

/** @throws InvalidInputError if a limit is not a whole number from 0, or an interval is longer than a timer can be. */
export function checkLimits(options: CodeExecutionToolOptions): void {
  for (const name of limits) {
    const value = options[name];
    const most = name === "progressIntervalMs" ? longestTimer : Number.MAX_SAFE_INTEGER;
    if (value === undefined || (Number.isSafeInteger(value) && value >= 0 && value <= most)) continue;
    throw new InvalidInputError(`${name} is ${value}`, { remedy: `Give a whole number, from 0 to ${most}.` });
  }
}
