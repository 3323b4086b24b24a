import * as z from "zod";
import type { JsonObject, JsonValue } from "../json-value.ts";
import { checkOptions, callbackOption } from "../options/check-options.ts";
import type { FunctionDefinition } from "./function-definition.ts";
import type { FunctionLanguage } from "./function-language.ts";
import type { FunctionRequirements } from "./function-requirements.ts";
import { parseJavaScriptFunction, parseJavaScriptSource } from "./javascript/parse-javascript-function.ts";
import { normaliseRequirements } from "./normalise-requirements.ts";
import { parseFunctionJson, requirementsToJson } from "./parse-function-json.ts";
import { parsePythonFunction } from "./python/parse-python-function.ts";

const sourceArgument = z.object({ source: z.string() });
const callableArgument = z.object({ callable: callbackOption<JavaScriptFunction>() });

/** Any function of this program that is written in JavaScript or TypeScript, as opposed to a built-in. */
export type JavaScriptFunction = (...parameters: never[]) => unknown;

/**
 * A function that an executor offers to the code it runs, together with what the function needs. Code blocks import it:
 * `from functions import load_data`.
 *
 * The function travels as text, so it must be self-contained: it sees its parameters, its `globalImports` and the
 * language's built-in names. Variables, other functions and imports of the surrounding code do not travel with it.
 *
 * @example
 * const loadData = FunctionWithRequirements.fromString(
 *   `
 *   def load_data() -> "pandas.DataFrame":
 *       """Load some sample data."""
 *       return pandas.DataFrame({"name": ["John", "Anna"]})
 *   `,
 *   { pythonPackages: ["pandas>=2"], globalImports: ["pandas"] },
 * );
 */
export class FunctionWithRequirements {
  /** The function's language; blocks in this language can import it. */
  readonly language: FunctionLanguage;
  /** The name under which it is imported. */
  readonly name: string;
  /**
   * The complete definition, dedented, with `\n` line endings and without blank lines around it. Python source stays
   * indented, below `if True:`, if one of its lines is indented less than the function, such as a line of a string.
   */
  readonly source: string;
  /**
   * Its head without decorators: in Python as it was written, `def load_data(a: int = 1, *args) -> "pandas.DataFrame":`; in
   * JavaScript on one line, `async function add(a, b = 1)`.
   */
  readonly signature: string;
  /**
   * In Python the docstring, dedented, if it is one string; in JavaScript the comment at the start of the body.
   * `undefined` if it is missing or empty.
   */
  readonly docstring: string | undefined;
  /** What the function needs. Frozen. */
  readonly requirements: FunctionRequirements;

  private constructor(language: FunctionLanguage, definition: FunctionDefinition, requirements: FunctionRequirements) {
    this.language = language;
    this.name = definition.name;
    this.source = definition.source;
    this.signature = definition.signature;
    this.docstring = definition.docstring;
    this.requirements = normaliseRequirements(language, requirements);
  }

  /**
   * Creates a Python function from its source: one definition, which may be async, decorated and surrounded by comments.
   * The whole source may be indented, as in a template literal.
   *
   * @param requirements - default: none. Python checks the source: executors report a mistake in it as a
   * `FunctionSetupError` when they set up the functions.
   *
   * @throws InvalidInputError if the source contains no function, or the function's head has no end, or if the
   * requirements are unknown or do not apply to Python.
   */
  static fromString(source: string, requirements: FunctionRequirements = {}): FunctionWithRequirements {
    checkOptions(sourceArgument, { source }, "FunctionWithRequirements.fromString");
    return new FunctionWithRequirements("python", parsePythonFunction(source), requirements);
  }

  /**
   * Creates a JavaScript function from a function of this program. Only the function's text travels: closures, `this`
   * and properties stay behind.
   *
   * @param requirements - default: none.
   * @throws InvalidInputError if the function has no name or no source text (built-in and bound functions), if it is a
   * class, or if the requirements are unknown or do not apply to JavaScript.
   */
  static fromCallable(callable: JavaScriptFunction, requirements: FunctionRequirements = {}): FunctionWithRequirements {
    checkOptions(callableArgument, { callable }, "FunctionWithRequirements.fromCallable");
    const definition = parseJavaScriptFunction(callable.name, Function.prototype.toString.call(callable));
    return new FunctionWithRequirements("javascript", definition, requirements);
  }

  /**
   * Restores a function that `toJSON` wrote; parses its source again.
   *
   * @throws InvalidInputError if the JSON has another shape, or as `fromString` and `fromCallable` do.
   */
  static fromJSON(json: JsonValue): FunctionWithRequirements {
    const { language, source, requirements } = parseFunctionJson(json);
    const definition = language === "python" ? parsePythonFunction(source) : parseJavaScriptSource(source);
    return new FunctionWithRequirements(language, definition, requirements);
  }

  /** Returns the function as plain JSON, for a component's config. */
  toJSON(): JsonObject {
    return {
      language: this.language,
      source: this.source,
      requirements: requirementsToJson(this.requirements),
    };
  }
}
