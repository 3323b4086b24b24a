import { FunctionWithRequirements, InvalidInputError } from "@fenced/core";
import { describe, expect, test } from "vitest";
import { assertFunctionSet } from "../../src/functions/assert-function-set.ts";

const load = FunctionWithRequirements.fromString("def load(): pass");
const save = FunctionWithRequirements.fromString("def save(): pass");

function javaScript(source: string): FunctionWithRequirements {
  return FunctionWithRequirements.fromJSON({ language: "javascript", source });
}

test("functions with different names are accepted", () => {
  expect(() => assertFunctionSet([], "functions")).not.toThrow();
  expect(() => assertFunctionSet([load, save], "functions")).not.toThrow();
});

test("functions with the same name are rejected", () => {
  expect(() => assertFunctionSet([load, save, load], "functions")).toThrow(InvalidInputError);
  expect(() => assertFunctionSet([load, save, load], "functions")).toThrow('Two python functions have the name "load"');
});

test("functions with the same name in different languages are accepted", () => {
  const inJavaScript = javaScript("function load() {}");
  expect(() => assertFunctionSet([load, inJavaScript], "functions")).not.toThrow();
  expect(() => assertFunctionSet([load, inJavaScript, inJavaScript], "functions")).toThrow("javascript");
});

describe("the module's name", () => {
  test.each(["functions", "_f", "my_functions2", "größe", "match"])("may be %j", (name) => {
    expect(() => assertFunctionSet([load], name)).not.toThrow();
  });

  test.each([
    "",
    "my-functions",
    "my.functions",
    "1st",
    "class",
    "None",
    "a b",
    "a\n",
    "../a",
    "a/b",
    "$a",
    "functions.py",
  ])("may not be %j", (name) => {
    expect(() => assertFunctionSet([load], name)).toThrow(InvalidInputError);
  });
});
