import { type ListedProcess, parseJson, type ProcessOptions, type TerminalSize } from "@fenced/core";
import {
  environmentOption,
  millisecondsOption,
  type OptionSchemas,
  optionsSchema,
  signalOption,
} from "@fenced/core/options";
import * as z from "zod";

const word = z.string().regex(/^[^\0]*$/, "must not contain a NUL character");
const name = word.min(1, "must not be empty");
const command = z.union(
  [name, z.tuple([name], word).readonly()],
  'must be a command line, or an array of a program and its arguments, without NUL characters: ["ls", "-l"]',
);
const stdin = z.union(
  [z.string(), z.custom<Uint8Array>((value) => value instanceof Uint8Array), z.boolean()],
  "must be a string, a Uint8Array, or true to write it later",
);
const characters = z.int().min(1).max(65_535);

/** The options of `resize`. */
export const terminalSize: z.ZodType<TerminalSize> = optionsSchema({
  columns: characters,
  rows: characters,
} satisfies OptionSchemas<TerminalSize>);

/** The argument of `address`. */
export const portNumber: z.ZodType<{ readonly port: number }> = optionsSchema({
  port: z.int().min(1).max(65_535),
} satisfies OptionSchemas<{ readonly port: number }>);

/** The options of `start`. */
export const processOptions: z.ZodType<ProcessOptions> = optionsSchema({
  command,
  cwd: name.exactOptional(),
  env: environmentOption.exactOptional(),
  stdin: stdin.exactOptional(),
  pty: terminalSize.exactOptional(),
  merged: z.boolean().exactOptional(),
  timeoutMs: millisecondsOption.exactOptional(),
  signal: signalOption.exactOptional(),
} satisfies OptionSchemas<ProcessOptions>);

/** A program as `list` has it. */
export type ProcessDescription = Omit<ListedProcess, "pid">;

/** Characters of a command that others are told. */
const longest = 4096;
/** The latest time that a `Date` can have, in milliseconds since 1970. */
const latest = 8.64e15;

/** Describes a program that starts now. */
export function describedProcess({ command: given, cwd, pty }: ProcessOptions): ProcessDescription {
  return {
    command: typeof given === "string" ? given.slice(0, longest) : cutWords(given),
    ...(cwd !== undefined && cwd.length <= longest && { cwd }),
    startedAt: new Date(),
    pty: pty !== undefined,
  };
}

function cutWords(words: readonly string[]): readonly string[] {
  const kept: string[] = [];
  let left = longest;
  for (const each of words) {
    if (left <= 0) break;
    kept.push(each.slice(0, left));
    left -= Math.max(1, each.length);
  }
  return kept;
}

const told = z.string().max(longest);
const label = z.object({
  command: z.union([told, z.array(told).max(longest)]),
  cwd: told.exactOptional(),
  startedAt: z.int().min(0).max(latest),
  pty: z.boolean(),
});

/** The description as one line of text without NUL characters, for another program. */
export function labelOf({ startedAt, ...description }: ProcessDescription): string {
  return JSON.stringify({ ...description, startedAt: startedAt.getTime() });
}

/** Reads such a line; `undefined` if it is none. */
export function readLabel(text: string): ProcessDescription | undefined {
  try {
    const { startedAt, ...description } = label.parse(parseJson(text));
    return { ...description, startedAt: new Date(startedAt) };
  } catch {
    return undefined;
  }
}
