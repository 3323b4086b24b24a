import { InvalidInputError } from "@fenced/core";
import type { CodeExecutionToolOptions } from "./code-execution-tool-options.ts";

const limits = [
  "maxOutputCharacters",
  "maxImages",
  "maxImageBytes",
  "progressIntervalMs",
  "maxProgressCharacters",
] as const;

/** @throws InvalidInputError if a limit is not a whole number from 0. */
export function checkLimits(options: CodeExecutionToolOptions): void {
  for (const name of limits) {
    const value = options[name];
    if (value === undefined || (Number.isSafeInteger(value) && value >= 0)) continue;
    throw new InvalidInputError(`${name} is ${value}`, { remedy: "Give a whole number, from 0." });
  }
}
