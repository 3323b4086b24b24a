import { InvalidInputError, type ModelOutputLimits } from "@fenced/core";

/** How much a server hands to its client at once; nothing is required. */
export interface McpServerOptions extends ModelOutputLimits {
  /** Bytes of a file that `read_file` gives, whatever is in it. Default: 3,750,000, which is 5 MB in base64. */
  readonly maxFileBytes?: number;
  /** Files that `list_files` names. Default: 1,000. */
  readonly maxFiles?: number;
}

const limits = ["maxOutputCharacters", "maxImages", "maxImageBytes", "maxFileBytes", "maxFiles"] as const;

/** @throws InvalidInputError if a limit is not a whole number from 0. */
export function checkServerOptions(options: McpServerOptions): void {
  for (const name of limits) {
    const value = options[name];
    if (value === undefined || (Number.isSafeInteger(value) && value >= 0)) continue;
    throw new InvalidInputError(`${name} is ${value}`, { remedy: "Give a whole number, from 0." });
  }
}
