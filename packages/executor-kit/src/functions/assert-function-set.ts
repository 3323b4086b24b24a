import { type FunctionLanguage, InvalidInputError, isPythonIdentifier } from "@fenced/core";

/**
 * Checks that these functions can share a module of this name.
 *
 * @param functionsModule - the name that blocks import: `from <functionsModule> import load_data`.
 * @throws InvalidInputError if two functions of one language have the same name, or if `functionsModule` is not a
 * Python identifier.
 */
export function assertFunctionSet(
  functions: readonly { readonly language: FunctionLanguage; readonly name: string }[],
  functionsModule: string,
): void {
  if (!isPythonIdentifier(functionsModule)) {
    throw new InvalidInputError(`functionsModule ${JSON.stringify(functionsModule)} is not a valid module name`, {
      remedy: 'Choose a Python identifier that is not a keyword, such as "functions".',
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
