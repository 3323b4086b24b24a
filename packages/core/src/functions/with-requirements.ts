import type { FunctionRequirements } from "./function-requirements.ts";
import { FunctionWithRequirements, type JavaScriptFunction } from "./function-with-requirements.ts";

/**
 * Declares requirements once for several functions. Call the result with Python source or a JavaScript function.
 *
 * @throws InvalidInputError as `FunctionWithRequirements.fromString` and `fromCallable` do.
 *
 * @example
 * const loadData = withRequirements({ pythonPackages: ["pandas>=2"], globalImports: ["pandas"] })(`
 *   def load_data() -> "pandas.DataFrame":
 *       """Load some sample data."""
 *       return pandas.DataFrame({"name": ["John", "Anna"]})
 * `);
 */
export function withRequirements(
  requirements: FunctionRequirements,
): (definition: string | JavaScriptFunction) => FunctionWithRequirements {
  return (definition) =>
    typeof definition === "string"
      ? FunctionWithRequirements.fromString(definition, requirements)
      : FunctionWithRequirements.fromCallable(definition, requirements);
}
