import { InvalidInputError } from "../../errors/invalid-input-error.ts";
import type { FunctionDefinition } from "../function-definition.ts";
import { isJavaScriptIdentifier } from "../names.ts";
import { functionExpression } from "./function-expression.ts";
import { javaScriptDocumentation } from "./javascript-documentation.ts";
import { javaScriptSignature } from "./javascript-signature.ts";
import { javaScriptStructure } from "./javascript-structure.ts";

/**
 * Parses a JavaScript function from its `toString()`.
 *
 * @param name - the function's `name`.
 * @throws InvalidInputError if there is no source text, or it is not a function that can be copied under this name.
 */
export function parseJavaScriptFunction(name: string, text: string): FunctionDefinition {
  if (/\{\s*\[native code\]\s*\}\s*$/.test(text)) {
    throw new InvalidInputError(`The function ${JSON.stringify(name)} has no source text`, {
      remedy: "Pass a function that is written in JavaScript, not a built-in or bound one.",
    });
  }
  if (!isJavaScriptIdentifier(name)) {
    const problem =
      name === "" ? "The function has no name" : `A function cannot be exported as ${JSON.stringify(name)}`;
    throw new InvalidInputError(problem, {
      remedy: "Declare it with a name, or assign it to a constant: code blocks import it by its name.",
    });
  }
  const structure = functionExpression(name, text.replaceAll(/\r\n?/g, "\n"));
  return {
    name,
    source: structure.ownName === name ? structure.text : `const ${name} = ${structure.text};`,
    signature: javaScriptSignature(name, structure),
    docstring: javaScriptDocumentation(structure),
  };
}

/**
 * Parses the source that `parseJavaScriptFunction` produced: a function declaration, or a constant that holds a
 * function.
 *
 * @throws InvalidInputError if it is anything else.
 */
export function parseJavaScriptSource(source: string): FunctionDefinition {
  const [, constant, value] = /^const\s+([^\s={[]+)\s*=\s*([\s\S]*?);?$/.exec(source.trim()) ?? [];
  const name = constant ?? javaScriptStructure(source.trim())?.ownName;
  if (name === undefined) {
    throw new InvalidInputError("This is not the source of one JavaScript function", {
      remedy: "Pass what FunctionWithRequirements.toJSON returned.",
    });
  }
  return parseJavaScriptFunction(name, value ?? source.trim());
}
