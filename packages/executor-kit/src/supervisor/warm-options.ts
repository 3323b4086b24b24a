import { optionsSchema, type OptionSchemas } from "@fenced/core/options";
import { z } from "zod";
import type { PlaceLanguages } from "../languages/command-languages.ts";
import type { WarmPrograms } from "./supervised-program.ts";

/** Options of the waiting interpreters; all are optional. */
export interface WarmOptions {
  /**
   * Modules of Python to import in advance: `["numpy", "pandas"]`. A module that cannot be imported is left to the blocks.
   * Default: none.
   */
  readonly preload?: readonly string[];
}

const settings: z.ZodType<WarmOptions> = optionsSchema({
  preload: z
    .array(
      z.string().regex(/^[\p{L}_][\p{L}\p{N}_]*(\.[\p{L}_][\p{L}\p{N}_]*)*$/u, "must be the name of a Python module"),
    )
    .exactOptional(),
} satisfies OptionSchemas<WarmOptions>);

/** Validates an executor's option `warm`. */
export const warmOption: z.ZodType<false | WarmOptions> = z.union([z.literal(false), settings]);

/**
 * The interpreters to keep waiting for an executor's blocks, if `warm` asks for it: Python only
 * if it runs blocks without arguments of its own.
 *
 * @param env - the variables of the blocks.
 */
export function warmPrograms(
  { found }: Pick<PlaceLanguages, "found">,
  warm: false | WarmOptions | undefined,
  env: Readonly<Record<string, string>>,
): WarmPrograms | undefined {
  if (warm === undefined || warm === false) return undefined;
  const [python, ...words] = found.get("python")?.command ?? [];
  const node = found.get("javascript")?.command;
  return {
    ...(python !== undefined && words.length === 0 && { python }),
    ...(node !== undefined && { node }),
    ...warm,
    env,
  };
}
