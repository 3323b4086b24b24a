import { compileFunction } from "node:vm";
import { parser } from "@lezer/javascript";
import { InvalidInputError } from "../../errors/invalid-input-error.ts";
import { dedentJavaScript } from "./dedent-javascript.ts";
import { javaScriptStructure, parseAlone, type JavaScriptStructure } from "./javascript-structure.ts";
import { stripKeptNames } from "./strip-kept-names.ts";

/**
 * Turns a function's text into an expression; the text may be a method: `add(a, b) { ... }`.
 *
 * @param name - for messages, and for methods.
 * @throws InvalidInputError if the text is a class, or not a function that JavaScript accepts in a module.
 */
export function functionExpression(name: string, text: string): JavaScriptStructure {
  const expression = syntaxErrorOf(text) === undefined ? text : (methodAsFunction(name, text) ?? text);
  const problem = syntaxErrorOf(expression);
  if (problem !== undefined) throw invalid(name, problem);
  const stripped = stripKeptNames(structureOf(name, expression));
  const dedented = dedentJavaScript(structureOf(name, stripped));
  return structureOf(name, dedented);
}

/** Asks the engine whether it accepts the expression, without running it. Modules are strict. */
function syntaxErrorOf(expression: string): string | undefined {
  try {
    compileFunction(`"use strict";(${expression}\n)`);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function structureOf(name: string, text: string): JavaScriptStructure {
  const structure = javaScriptStructure(text);
  if (structure) return structure;
  const isClass = parseAlone(text)?.name === "ClassExpression";
  throw invalid(name, isClass ? "it is a class" : "it is not a single function");
}

/** `async *add(a) {}` becomes `async function* add(a) {}`. */
function methodAsFunction(name: string, text: string): string | undefined {
  const method = parser
    .parse(`({${text}})`)
    .topNode.firstChild?.firstChild?.firstChild?.nextSibling?.getChild("Property");
  const parameters = method?.getChild("ParamList");
  if (!method || !parameters || method.getChild("get") || method.getChild("set")) return undefined;
  const keyword = `${method.getChild("async") ? "async " : ""}function${method.getChild("Star") ? "*" : ""}`;
  return `${keyword} ${name}${text.slice(parameters.from - 2)}`;
}

function invalid(name: string, reason: string): InvalidInputError {
  return new InvalidInputError(`The function ${JSON.stringify(name)} cannot be copied to the code: ${reason}`, {
    remedy: "Pass a plain, arrow or async function, a generator, or a method that does not use its class.",
  });
}
