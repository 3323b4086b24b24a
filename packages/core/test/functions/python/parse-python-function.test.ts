import { execFileSync } from "node:child_process";
import { needs } from "@fenced/test-support";
import { describe, expect, test } from "vitest";
import { parsePythonFunction } from "../../../src/functions/python/parse-python-function.ts";
import { InvalidInputError } from "../../../src/index.ts";

describe("the name", () => {
  test.each([
    ["def load_data(): pass", "load_data"],
    ["async  def  load_data (): pass", "load_data"],
    ["@cache\n@wraps(other)\ndef load_data(): pass", "load_data"],
    ["def print(match): pass", "print"],
    ["def größe(): pass", "größe"],
    ["def 名前(): pass", "名前"],
    ["def f[T](a: T): pass", "f"],
    ["# def not_this(): pass\ndef f():\n    def g(): pass\n    return g", "f"],
  ])("of %j is %s", (source, name) => {
    expect(parsePythonFunction(source).name).toBe(name);
  });
});

describe("the signature is the head as it was written", () => {
  test.each([
    ['def load_data() -> "pandas.DataFrame":\n    pass', 'def load_data() -> "pandas.DataFrame":'],
    ["def f(a:int=1,*args,b = 2,**kwargs)->str: pass", "def f(a:int=1,*args,b = 2,**kwargs)->str:"],
    ["@a\n@b(':')\ndef f(): pass", "def f():"],
    ["def f(a: dict[str, int] = {'k': 1}, *, b=lambda x: x): pass", undefined],
    ["def f(a=')', b=\"(:\", c='''\n)''', d='\\''): pass", undefined],
    ["def f[T: int](a: T) -> Callable[[T], T]: pass", undefined],
    ["def f(\n    a: int,  # the first :)\n    b: str,\n) -> None: pass", undefined],
    ["  def f(\n    a,\n  ): pass", "def f(\n  a,\n):"],
  ])("of %j", (source, signature) => {
    expect(parsePythonFunction(source).signature).toBe(signature ?? source.slice(0, -" pass".length));
  });
});

describe("the docstring", () => {
  const of = (body: string): string | undefined => parsePythonFunction(`def f():\n    ${body}\n`).docstring;

  test.each([
    ['"""Load."""', "Load."],
    ["'''Load.'''", "Load."],
    ['"Load."', "Load."],
    ["'Load.'", "Load."],
    ["r'''a\\nb'''", "a\\nb"],
    ['u"Load."', "Load."],
    ['R"a\\b"', "a\\b"],
    ['"Load."; return 1', "Load."],
    ['"Load."  # comment', "Load."],
    ['# comment\n\n    "Load."', "Load."],
    ['"""Say "hi" and \'ho\'."""', "Say \"hi\" and 'ho'."],
    ['"""It ends with a quote\\""""', 'It ends with a quote"'],
    ["'''A \"\"\" inside.'''", 'A """ inside.'],
    ['"tab\\there, \\x41, back\\\\slash, \\q"', "tab\there, \\x41, back\\slash, \\q"],
    ['"one \\\n    line"', "one     line"],
    ['"""\n    First.\n\n        Indented.\n    Last.\n    """', "First.\n\n    Indented.\nLast."],
    ['"""First.\n    Second.\n  Third."""', "First.\n  Second.\nThird."],
    ['"""def not_a_function(:\n    x = (\n    """', "def not_a_function(:\nx = ("],
  ])("is taken from %s", (body, docstring) => {
    expect(of(body)).toBe(docstring);
  });

  test("is found on the line of the def", () => {
    expect(parsePythonFunction("def f(): 'doc'").docstring).toBe("doc");
    expect(parsePythonFunction("def f(): 'doc'; pass").docstring).toBe("doc");
  });

  test.each([
    ["pass"],
    ['""'],
    ['"""   \n    """'],
    ['f"not {this}"'],
    ['b"not this"'],
    ['"a" "b"'],
    ['("a")'],
    ['"a" % b'],
    ['"a" + "b"'],
    ['"a".strip()'],
    ['x = "not this"'],
    ['pass\n    "not this"'],
    ['return "not this"'],
  ])("is absent in %s", (body) => {
    expect(of(body)).toBeUndefined();
  });
});

describe("the source", () => {
  const of = (text: string): string => parsePythonFunction(text).source;

  test("of a template literal is dedented", () => {
    expect(
      of(`
        @cache
        def f(a,
              b):
            """Doc.

            More.
            """
            # comment
            return a
      `),
    ).toBe('@cache\ndef f(a,\n      b):\n    """Doc.\n\n    More.\n    """\n    # comment\n    return a');
  });

  test("keeps comments around the function, but no blank lines", () => {
    expect(of("\n\n  # before\n\n  def f(): pass\n  # behind\n\n")).toBe("# before\n\ndef f(): pass\n# behind");
  });

  test("has uniform line ends", () => {
    expect(of("def f():\r\n    return '''a\r\nb'''\r")).toBe("def f():\n    return '''a\nb'''");
  });

  test("may be indented with tabs", () => {
    expect(of("\tdef f():\n\t\treturn 1")).toBe("def f():\n\treturn 1");
  });

  test("dedents a string whose lines are indented too, as Python's textwrap.dedent does", () => {
    expect(of("    def f():\n        return '''\n    a\n\n      b\n    '''")).toBe(
      "def f():\n    return '''\na\n\n  b\n'''",
    );
  });

  test.each([
    ["a string", "    def f(a):\n        return '''\nleft\n      right\n'''", undefined],
    ["a comment", "    # before\n  # comment\n    @cache\n    def f(a):\n        'doc'", "doc"],
    ["a parameter", "    def f(a,\n  b):\n        'doc'", "doc"],
  ])(
    "stays indented, below a line that allows it, if a line of it is left of the function: %s",
    (_, text, docstring) => {
      const parsed = parsePythonFunction(text);
      expect(parsed).toMatchObject({ name: "f", source: `if True:\n${text}`, docstring });
      expect(parsed.signature).toMatch(/^def f\(a/);
      expect(parsePythonFunction(parsed.source)).toEqual(parsed);
    },
  );

  test("keeps a string's text, whichever way it is written", needs("python3"), () => {
    const text = "    def f():\n        return '''\nleft\n      right\n'''";
    for (const source of [text, text.replaceAll("left", "      left")]) {
      const program = `${parsePythonFunction(source).source}\nprint(repr(f()))`;
      const printed = execFileSync("python3", ["-c", program], { encoding: "utf8" });
      expect(printed).toBe(`'\\n${source === text ? "" : "      "}left\\n      right\\n'\n`);
    }
  });

  test("may start with a byte order mark", () => {
    expect(of("\uFEFFdef f(): pass")).toBe("def f(): pass");
  });
});

describe("a source without a function is rejected at once", () => {
  const noName = 'no line at its margin begins with "def" and a name';
  const noEnd = 'the head of f has no ":" at its end';

  test.each([
    ["", noName],
    ["# def f(): pass", noName],
    ["x = 1", noName],
    ["class C:\n    def f(): pass", noName],
    ["if x:\n    def f(): pass", noName],
    ["def (): pass", noName],
    ["def class(): pass", noName],
    ["def f(:\n    pass", noEnd],
    ["def f()\n    pass", noEnd],
  ])("%j", (source, reason) => {
    const parse = (): unknown => parsePythonFunction(source);
    expect(parse).toThrow(InvalidInputError);
    expect(parse).toThrow(`This is not the source of a Python function: ${reason}.`);
    expect(parse).toThrow("globalImports");
  });

  test.each([
    ["def f():\n  return )"],
    ["import os\ndef f(): pass"],
    ["def f(): pass\ndef g(): pass"],
    ["def f(*): pass"],
  ])("but Python judges %j", (source) => {
    expect(parsePythonFunction(source)).toMatchObject({ name: "f", source });
  });
});

describe("hostile sources", { timeout: 120_000 }, () => {
  test.each([
    ["brackets", `def f${"(".repeat(500_000)}`],
    ["quotes", `def f(${"'".repeat(500_001)}`],
    ["tripled quotes", `def f(${`"""'''`.repeat(100_000)}'`],
    ["strings", `def f(a=${"'a' ".repeat(100_000)}): pass`],
    ["lines", `def f():\n${"    x = 1\n".repeat(50_000)}`],
    ["blank lines", `${" \n".repeat(300_000)}def f(${"\n".repeat(300_000)}): ${" \n".repeat(300_000)}`],
    ["definitions", "def ".repeat(200_000)],
    ["a long string", `def f():\n    '''${"a\\n".repeat(300_000)}'''`],
    ["a string without an end", `def f(): '${"\\".repeat(500_001)}`],
    ["comments", `def f(): ${"#\n".repeat(300_000)}'`],
    ["white space", `def f():${" ".repeat(500_000)}x`],
  ])("do not hang or crash the parser: %s", (_what, source) => {
    const outcome = (): string => {
      try {
        return parsePythonFunction(source).name;
      } catch (error) {
        return InvalidInputError.isInstance(error) ? "refused" : String(error);
      }
    };
    expect(["f", "refused"]).toContain(outcome());
  });
});
