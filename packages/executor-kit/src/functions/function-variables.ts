import path from "node:path";
import { pythonPath } from "../languages/command-languages.ts";
import type { BlockRun } from "../run/block-run.ts";
import type { FunctionPlaces } from "./function-setup.ts";

/**
 * The variables that let a block find functions: their directories at the front of Python's path and, if the block can
 * call host functions, the shell command on the `PATH`.
 *
 * @param given - the block's other variables.
 * @param delimiter - separates directories where the code runs. Default: this host's.
 */
export function functionVariables(
  { python, pythonPackages, commands }: Omit<FunctionPlaces, "owner">,
  hostCalls: BlockRun["hostCalls"],
  given: Readonly<Record<string, string>>,
  delimiter: string = path.delimiter,
): Record<string, string> {
  const variant = python === undefined || hostCalls?.variant === undefined ? [] : [`${python}/${hostCalls.variant}`];
  const own = [...variant, ...[python, pythonPackages].filter((place) => place !== undefined)];
  const { PATH: searched, PYTHONPATH: modules } = given;
  const hasCommand = hostCalls !== undefined && commands !== undefined && searched !== undefined;
  return {
    PYTHONPATH: pythonPath(own, modules, delimiter),
    ...(hasCommand ? { PATH: `${commands}${delimiter}${searched}` } : {}),
  };
}
