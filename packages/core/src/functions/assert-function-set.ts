import { InvalidInputError } from "../errors/invalid-input-error.ts";
import type { FunctionWithRequirements } from "./function-with-requirements.ts";
import { isPythonIdentifier } from "./is-python-identifier.ts";

/**
 * Checks that these functions can stand together in modules of this name. Executors call it when they are made.
 *
 * @param functionsModule - the name that blocks import: `from <functionsModule> import load_data`.
 * @throws InvalidInputError if two functions of one language have the same name, or if `functionsModule` is not a
 * Python identifier.
 */
export function assertFunctionSet(functions: readonly FunctionWithRequirements[], functionsModule: string): void {
  if (!isPythonIdentifier(functionsModule)) {
    throw new InvalidInputError(`functionsModule ${JSON.stringify(functionsModule)} cannot be the name of a module`, {
      remedy: 'Choose a Python identifier that is not a keyword, "functions" for one.',
    });
  }
  const seen = new Set<string>();
  for (const { language, name } of functions) {
    const key = `${language} ${name}`;
    if (seen.has(key)) {
      throw new InvalidInputError(`Two ${language} functions have the name ${JSON.stringify(name)}`, {
        remedy: "Rename one of them: both go into the same module.",
      });
    }
    seen.add(key);
  }
}
