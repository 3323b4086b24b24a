import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { FunctionWithRequirements, InvalidInputError, type JavaScriptFunction } from "../../../src/index.ts";

/** A function with exactly this source text: the compiler of the tests does not touch it. */
function evaluated(expression: string): JavaScriptFunction {
  return runInNewContext(expression) as JavaScriptFunction;
}

/** The function `f` after `const f = ...`. */
function assigned(expression: string): JavaScriptFunction {
  return evaluated(`const f = ${expression}; f`);
}

function parse(callable: JavaScriptFunction): FunctionWithRequirements {
  return FunctionWithRequirements.fromCallable(callable);
}

function refusal(callable: JavaScriptFunction): string {
  try {
    parse(callable);
  } catch (error) {
    if (InvalidInputError.isInstance(error)) return error.message;
    throw error;
  }
  throw new Error("the function was accepted");
}

describe("the source is a definition that a module can export", () => {
  test.each([
    ["(function f(a, b) { return a + b; })", "function f(a, b) { return a + b; }"],
    ["(async function f() {})", "async function f() {}"],
    ["(function* f() { yield 1; })", "function* f() { yield 1; }"],
    ["(async function* f() {})", "async function* f() {}"],
    ["const f = function (a) {}; f", "const f = function (a) {};"],
    ["const f = async function (a) {}; f", "const f = async function (a) {};"],
    ["const f = (a, b) => a + b; f", "const f = (a, b) => a + b;"],
    ["const f = a => ({ a }); f", "const f = a => ({ a });"],
    ["const f = async a => { await a; }; f", "const f = async a => { await a; };"],
    ["({ f(a) { return a; } }).f", "function f(a) { return a; }"],
    ["({ async f(a) {} }).f", "async function f(a) {}"],
    ["({ *f(a) {} }).f", "function* f(a) {}"],
    ["({ async *f(a) {} }).f", "async function* f(a) {}"],
    ["({ 'f'(a) {} }).f", "function f(a) {}"],
    ["({ ['f' + ''](a) {} }).f", "function f(a) {}"],
    ["({ f: (a) => a }).f", "const f = (a) => a;"],
    ["(class { static f(a) {} }).f", "function f(a) {}"],
    ["new (class { f(a) {} })().f", "function f(a) {}"],
    ["({ get(a) {} }).get", "function get(a) {}"],
    ["({ async(a) {} }).async", "function async(a) {}"],
    ["Object.defineProperty(function g() {}, 'name', { value: 'f' })", "const f = function g() {};"],
    ["const f = (a) => a // behind\n; f", "const f = (a) => a;"],
    ["(function f(größe) { return größe; })", "function f(größe) { return größe; }"],
    [
      "(function f() { return /[/]`/u.test('`') && `${'`'}`; })",
      "function f() { return /[/]`/u.test('`') && `${'`'}`; }",
    ],
  ])("%j", (expression, source) => {
    const made = parse(evaluated(expression));
    expect(made.source).toBe(source);
    expect(made.language).toBe("javascript");
  });

  test("a function of this file becomes a definition that runs", () => {
    const add = (first: number, second = 1): number => first + second;
    const made = parse(add);
    expect(made.name).toBe("add");
    expect(runInNewContext(`${made.source}\nadd(2)`)).toBe(3);
  });

  test("lines are dedented, but not the text of template literals", () => {
    const source = "function f() {\r\n      // deep\r\n      return `\r\n        kept\r\n  ${[\r\n    1]}`;\r\n    }";
    expect(parse(evaluated(`(${source})`)).source).toBe(
      "function f() {\n  // deep\n  return `\n        kept\n  ${[\n    1]}`;\n}",
    );
  });

  test("lines are dedented even if lezer cannot parse the parameters as a whole", () => {
    const source = "async ({ a } = {}, [b] = `\n        kept`) => {\n      return `\n        kept`;\n    }";
    expect(parse(assigned(source)).source).toBe(
      "const f = async ({ a } = {}, [b] = `\n        kept`) => {\n  return `\n        kept`;\n};",
    );
  });

  test("calls that esbuild adds to keep names are removed", () => {
    const source = `function f() {
  const g = /* @__PURE__ */ __name(() => __name((a) => a, "h"), "g");
  function i() {}
  __name(i, "i");
  return g()(1) + __name.length + __name(1);
}`;
    expect(parse(evaluated(`(${source})`)).source).toBe(`function f() {
  const g = /* @__PURE__ */ () => (a) => a;
  function i() {}
  i;
  return g()(1) + __name.length + __name(1);
}`);
  });
});

describe("the signature", () => {
  test.each([
    ["(function f(a,b=1) {})", "function f(a, b = 1)"],
    ["(async function f ( a , ...rest ) {})", "async function f(a, ...rest)"],
    ["(function* f() {})", "function* f()"],
    ["({ async *f(a) {} }).f", "async function* f(a)"],
    ["(a, b = 1) => a", "function f(a, b = 1)"],
    ["a => a", "function f(a)"],
    ["async a => a", "async function f(a)"],
    ["async () => 1", "async function f()"],
    ["(function f(\n  a, // the first\n  /* the second */ b,\n) {})", "function f(a, b)"],
    ["({ a } = {}) => a", "function f({ a } = {})"],
    ["async /* why */ ({ a } = {}) /* not */ => a", "async function f({ a } = {})"],
    ["([a] = `\n`) => a", "function f([a] = `\\n`)"],
    ["({ a, b: [c, d] = [] } = {}, [e] = [1,2]) => a", "function f({ a, b: [c, d] = [] } = {}, [e] = [1, 2])"],
    ["(a = 'x  ,y', b = /[, ]  /g, c = `x\n  y`) => a", "function f(a = 'x  ,y', b = /[, ]  /g, c = `x\\n  y`)"],
    ["(a = (b) => b, c = a?.b ?? !a) => a", "function f(a = (b) => b, c = a?.b ?? !a)"],
  ])("of %j", (expression, signature) => {
    const callable = expression.startsWith("(function") ? evaluated(expression) : undefined;
    const method = expression.startsWith("({ async *") ? evaluated(expression) : undefined;
    expect(parse(callable ?? method ?? assigned(expression)).signature).toBe(signature);
  });
});

describe("the docstring is the comment at the start of the body", () => {
  test.each([
    ["(function f() { /** Adds. */ })", "Adds."],
    ["(function f() { /* Adds. */ return 1; })", "Adds."],
    ["(function f() {\n  /**\n   * Adds.\n   *\n   *   Indented.\n   */\n  return 1; })", "Adds.\n\n  Indented."],
    ["(function f() {\n  // One.\n  //   Two.\n  let a; // three\n})", "One.\n  Two."],
    ["(function f() {\n  /* One. */ // two\n})", "One."],
    ["(function f() { // Adds.\n})", "Adds."],
    ["(function f() {})", undefined],
    ["(function f() { let a; /* not this */ })", undefined],
    ["(function f(/* not this */) {})", undefined],
    ["(function f() { /* */ })", undefined],
    ["(function f() { return '/* not this */'; })", undefined],
  ])("in %j", (expression, docstring) => {
    expect(parse(evaluated(expression)).docstring).toBe(docstring);
  });

  test("or at the start of an arrow function's result", () => {
    expect(parse(assigned("(a) => /* Adds. */ a")).docstring).toBe("Adds.");
    expect(parse(assigned("(a) => // Adds.\n a")).docstring).toBe("Adds.");
    expect(parse(assigned("(a) => { /** Adds. */ }")).docstring).toBe("Adds.");
    expect(parse(assigned("async ({ a } = {}) => { /** Adds. */ }")).docstring).toBe("Adds.");
  });
});

describe("functions that are not self-contained are rejected", () => {
  test.each<[string, JavaScriptFunction, string]>([
    ["a built-in function", Math.max, "has no source text"],
    ["a bound function", evaluated("(function f() {}).bind(1)"), "has no source text"],
    ["a proxy", evaluated("new Proxy(function f() {}, {})"), "has no source text"],
    ["a class", evaluated("(class f {})"), "it is a class"],
    ["an anonymous function", evaluated("(function () {})"), "has no name"],
    ["an anonymous arrow", evaluated("(() => 1)"), "has no name"],
    ["a getter", evaluated("Object.getOwnPropertyDescriptor({ get f() { return 1; } }, 'f').get"), '"get f"'],
    ["a private method", evaluated("new (class { #f() {} g() { return this.#f; } })().g()"), '"#f"'],
    ["a reserved name", evaluated("({ delete() {} }).delete"), '"delete"'],
    ["a name that is not an identifier", evaluated("({ 'a-b'() {} })['a-b']"), '"a-b"'],
    ["a symbol as name", evaluated("(() => { const f = Symbol('f'); return { [f]() {} }[f]; })()"), '"[f]"'],
    ["a method that uses super", evaluated("({ f() { return super.f; } }).f"), "super"],
    ["a function that strict mode rejects", evaluated("(function f() { return 010; })"), "strict mode"],
  ])("%s", (_what, callable, reason) => {
    expect(refusal(callable)).toContain(reason);
  });
});

describe("the source from JSON", () => {
  function parseSource(source: string): FunctionWithRequirements {
    return FunctionWithRequirements.fromJSON({ language: "javascript", source });
  }

  test.each([
    ["function f(a) { return a; }"],
    ["async function* f() {}"],
    ["const f = (a) => a;"],
    ["const f = async function (a) {};"],
    ["const f = function g() {};"],
    ["const f = async ({ a, b: [c] = [] } = {}, [d] = [1]) => ({ a });"],
    ["const f = async => async;"],
  ])("%j is kept as it is", (source) => {
    expect(parseSource(source)).toMatchObject({ name: "f", source });
  });

  test("may lack a semicolon and have blank lines around it", () => {
    expect(parseSource("\nconst f = (a) => a\n").source).toBe("const f = (a) => a;");
  });

  test.each([
    [""],
    ["f"],
    ["const f = 1;"],
    ["const f = g;"],
    ["const f = (() => {})();"],
    ["const f = () => {}, g = 1;"],
    ["const { f } = () => {};"],
    ["let f = () => {};"],
    ["class f {}"],
    ["const f = class {};"],
    ["function f() {} function g() {}"],
    ["function f() {} process.exit();"],
    ["process.exit(); function f() {}"],
    ["const f = () => {}; process.exit();"],
    ["const f = (() => {}, () => 1);"],
    ["const f = (a) => a), (1;"],
    ["const f = ({ a } = {}) => a), (1;"],
    ["function f() {}), (1"],
    ["import 'fs'; function f() {}"],
    ["export function f() {}"],
    ["export default function f() {}"],
    ["function f( {}"],
    ["function f() { return 1 +; }"],
    ["function f() {"],
    ["function f() {}}"],
    ["function f() { await 1; }"],
    ["(function f() {})"],
    ["def f(): pass"],
  ])("%j is rejected", (source) => {
    expect(() => parseSource(source)).toThrow(InvalidInputError);
  });
});
