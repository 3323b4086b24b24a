import { BackendUnavailableError } from "@fenced/core";
import type { PlaceLanguages } from "../languages/command-languages.ts";
import type { InterpreterProgram } from "./interpreters.ts";
import type { WarmOptions } from "./warm-options.ts";

/**
 * What a stateful session starts where these languages are.
 *
 * @param settings - `env`: the variables of blocks; `commands`: the directory of the shell commands that call host functions;
 * `warm`: the option of the executor.
 * @throws BackendUnavailableError if there is no Python.
 */
export function interpreterProgram(
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
