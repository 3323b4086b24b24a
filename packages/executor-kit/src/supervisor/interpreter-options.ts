import { BackendUnavailableError } from "@fenced/core";
import { optionsSchema, type OptionSchemas } from "@fenced/core/options";
import { z } from "zod";
import type { PlaceLanguages } from "../languages/command-languages.ts";
import type { InterpreterProgram } from "./interpreters.ts";
import type { WarmPrograms } from "./supervised-program.ts";

/** Options of the waiting interpreters; all are optional. */
export interface WarmOptions {
  /**
   * Modules of Python to import in advance: `["numpy", "pandas"]`. A module that cannot be imported is left to the blocks.
   * Default: none.
   */
  readonly preload?: readonly string[];
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
 * The interpreters to keep waiting for an executor's blocks, if `warm` asks for it: Python only
 * if it runs blocks without arguments of its own. None for a stateful session: hostile code in an interpreter that lives on
 * could wait for them.
 *
 * @param env - the variables of the blocks.
 */
export function warmPrograms(
  { found }: Pick<PlaceLanguages, "found">,
  { warm, stateful = false }: { readonly warm?: false | WarmOptions | undefined; readonly stateful?: boolean },
  env: Readonly<Record<string, string>>,
): WarmPrograms | undefined {
  if (warm === undefined || warm === false || stateful) return undefined;
  const [python, ...words] = found.get("python")?.command ?? [];
  const node = found.get("javascript")?.command;
  return {
    ...(python !== undefined && words.length === 0 && { python }),
    ...(node !== undefined && { node }),
    ...warm,
    env,
  };
}

/** Options of executors whose Python blocks can run in an interpreter that lives from block to block. */
export interface StatefulExecutorOptions {
  /**
   * Run Python blocks in one interpreter, so that variables survive from block to block, and the value of the last expression is
   * shown; `fork()` then makes a second executor with the same variables. Calls run one after another. Blocks in other
   * languages remain processes of their own. Default: false.
   */
  readonly stateful?: boolean;
  /**
   * The directory on this host where rich outputs of a stateful session are saved as files. Default: a temporary one, deleted by
   * `stop()`.
   */
  readonly outputDir?: string;
}

/** The schemas of these options, each by itself. */
export const statefulOptions: OptionSchemas<StatefulExecutorOptions> = {
  stateful: z.boolean().exactOptional(),
  outputDir: z.string().min(1).exactOptional(),
};

/** Reports an option that would be ignored. */
export function checkStateful({ value, issues }: z.core.ParsePayload<StatefulExecutorOptions>): void {
  if (value.outputDir === undefined || value.stateful === true) return;
  const message = "needs `stateful: true`: only a stateful session shows rich outputs";
  issues.push({ code: "custom", path: ["outputDir"], input: value.outputDir, message });
}

/**
 * What a stateful session starts where these languages are.
 *
 * @param settings - `env`: the variables of blocks; `commands`: the directory of the shell commands that call host functions;
 * `warm`: the option of the executor.
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
      remedy: "Run it where there is Python 3.8 or later, or leave `stateful` out.",
    });
  }
  const preload = warm === undefined || warm === false ? [] : (warm.preload ?? []);
  return { ...settings, command: python.command, preload };
}
