import { BackendUnavailableError } from "@fenced/core";
import { optionsSchema, type OptionSchemas } from "@fenced/core/options";
import { z } from "zod";
import type { PlaceLanguages } from "../../languages/command-languages.ts";
import type { WarmPrograms } from "../blocks/supervised-program.ts";
import type { InterpreterProgram } from "../interpreters/interpreters.ts";

/** Options of the waiting interpreters; all are optional. */
export interface WarmOptions {
  /**
   * Python modules to import in advance: `["numpy", "pandas"]`. A module that fails to import is skipped; blocks that
   * import it get the error. Default: none.
   */
  readonly preload?: readonly string[] | undefined;
}

const warmSettings: z.ZodType<WarmOptions> = optionsSchema({
  preload: z
    .array(
      z.string().regex(/^[\p{L}_][\p{L}\p{N}_]*(\.[\p{L}_][\p{L}\p{N}_]*)*$/u, "must be the name of a Python module"),
    )
    .exactOptional(),
} satisfies OptionSchemas<WarmOptions>);

/** Validates an executor's option `warm`. */
export const warmOption: z.ZodType<false | WarmOptions> = z.union([z.literal(false), warmSettings]);

/**
 * The interpreters to keep waiting for an executor's blocks. Includes Python only if its command has no arguments.
 *
 * @param env - the blocks' variables.
 */
export function warmPrograms(
  { found }: Pick<PlaceLanguages, "found">,
  { preload }: WarmOptions,
  env: Readonly<Record<string, string>>,
): WarmPrograms {
  const [python, ...words] = found.get("python")?.command ?? [];
  const node = found.get("javascript")?.command;
  return {
    ...(python !== undefined && words.length === 0 && { python }),
    ...(node !== undefined && { node }),
    ...(preload !== undefined && { preload }),
    env,
  };
}

/**
 * The interpreter that a stateful session starts, given these languages.
 *
 * @param settings - `env`: the blocks' variables; `commands`: the directory of the shell commands that call host
 * functions; `warm`: the executor's option.
 * @throws BackendUnavailableError if there is no Python.
 */
export function interpreterToStart(
  { found, missing }: Pick<PlaceLanguages, "found" | "missing">,
  {
    warm,
    ...settings
  }: Pick<InterpreterProgram, "env" | "commands"> & { readonly warm: false | WarmOptions | undefined },
): InterpreterProgram {
  const python = found.get("python");
  if (!python) {
    const reason = missing.get("python");
    throw new BackendUnavailableError(`A stateful session needs Python${reason === undefined ? "" : `: ${reason}`}`, {
      remedy: "Run it where Python 3.8 or later is installed, or leave `stateful` out.",
    });
  }
  const preload = warm === undefined || warm === false ? [] : (warm.preload ?? []);
  return { ...settings, command: python.command, preload };
}
