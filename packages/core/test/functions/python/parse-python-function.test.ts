import { describe, expect, test } from "vitest";
import { parsePythonFunction } from "../../../src/functions/python/parse-python-function.ts";
import { InvalidInputError } from "../../../src/index.ts";

function refusal(source: string): string {
  try {
    parsePythonFunction(source);
  } catch (error) {
    if (InvalidInputError.isInstance(error)) return error.message;
    throw error;
  }
  throw new Error("the source was accepted");
}

describe("hostile source", () => {
  test.each([
    ["f-strings in fields", `def f(): return ${"f'{".repeat(2000)}`],
    ["f-strings in fields, closed", `def f(): return ${"f'{".repeat(2000)}1${"}'".repeat(2000)}`],
    ["fields in specifications", `def f(a): return f'${"{a:".repeat(2000)}${"}".repeat(2000)}'`],
    ["brackets", `def f(): return ${"(".repeat(5000)}${")".repeat(5000)}`],
  ])("is rejected with a message: %s", (_what, source) => {
    expect(refusal(source)).toContain("This is not the source of a Python function");
  });
});

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

describe("the signature", () => {
  test.each([
    ['def load_data() -> "pandas.DataFrame":\n    pass', 'def load_data() -> "pandas.DataFrame":'],
    ["def f(a:int=1,*args,b = 2,**kwargs)->str: pass", "def f(a: int = 1, *args, b=2, **kwargs) -> str:"],
    ["async   def f ( a , b ) : pass", "async def f(a, b):"],
    ["@a\n@b(1)\ndef f(): pass", "def f():"],
    ["def f(a, /, b, *, c): pass", "def f(a, /, b, *, c):"],
    ["def f(* args, ** kwargs): pass", "def f(*args, **kwargs):"],
    [
      "def f(\n    a: int,  # the first\n    b: str = 'x, y',\n) -> None:\n    pass",
      "def f(a: int, b: str = 'x, y') -> None:",
    ],
    ["def f(a: dict[\n    str,\n    list[int],\n] = {}): pass", "def f(a: dict[str, list[int],] = {}):"],
    ["def f(a=(1,), b=[1,2], c={'k':1}): pass", "def f(a=(1,), b=[1, 2], c={'k':1}):"],
    ["def f(a=x if y else z, b=not w): pass", "def f(a=x if y else z, b=not w):"],
    ["def f(a=lambda x, y=1: x, b=2): pass", "def f(a=lambda x, y=1: x, b=2):"],
    ["def f(a: int = lambda x=1: x): pass", "def f(a: int = lambda x=1: x):"],
    ["def f(a=-1, b: int=-1, c=2 ** 3): pass", "def f(a=-1, b: int = -1, c=2 ** 3):"],
    ["def f(a: 'int' = 1) \\\n    -> 'str': pass", "def f(a: 'int' = 1) -> 'str':"],
    ["def f(a='''x\ny'''): pass", 'def f(a="x\\ny"):'],
    ["def f() -> Callable[[int], str]: pass", "def f() -> Callable[[int], str]:"],
    ["def f() -> (\n    int | None\n): pass", "def f() -> (int | None):"],
    ["def f[T: int,](a: T) -> T: pass", "def f[T: int](a: T) -> T:"],
    ["def f(a: x[1:2] = y[3:4]): pass", "def f(a: x[1:2] = y[3:4]):"],
  ])("of %j", (source, signature) => {
    expect(parsePythonFunction(source).signature).toBe(signature);
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
    ['"Load " "some " \'data.\'', "Load some data."],
    ['("Load "\n        "data.")', "Load data."],
    ['("Load.")', "Load."],
    ['"Load."; return 1', "Load."],
    ['"""Say "hi" and \'ho\'."""', "Say \"hi\" and 'ho'."],
    ['"""It ends with a quote\\""""', 'It ends with a quote"'],
    ["'''A \"\"\" inside.'''", 'A """ inside.'],
    ['"tab\\there, \\x41\\u00e9\\U0001F600\\101, back\\\\slash, \\q"', "tab     here, Aé😀A, back\\slash, \\q"],
    ['"\\N{BULLET} one"', "\\N{BULLET} one"],
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
    ['"a" f"b"'],
    ['b"not this"'],
    ['"a" % b'],
    ['"a".strip()'],
    ['("a", )'],
    ['("a")("b")'],
    ['x = "not this"'],
    ['pass\n    "not this"'],
    ['return "not this"'],
    ["# not this"],
  ])("is absent in %s", (body) => {
    expect(of(body.startsWith("#") ? `${body}\n    pass` : body)).toBeUndefined();
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

  test("leaves a string unchanged if its lines start left of the function", () => {
    expect(of("    def f():\n        return '''\nleft\n      right\n'''")).toBe(
      "def f():\n    return '''\nleft\n      right\n'''",
    );
  });

  test("dedents a string whose lines are indented too, as Python's textwrap.dedent does", () => {
    expect(of("    def f():\n        return '''\n    a\n\n      b\n    '''")).toBe(
      "def f():\n    return '''\na\n\n  b\n'''",
    );
  });

  test("dedents comments and continuation lines as far as possible", () => {
    expect(of("    def f(a,\n  b):\n  # comment\n        return a")).toBe("def f(a,\nb):\n# comment\n    return a");
  });

  test("may start with a byte order mark", () => {
    expect(of("\uFEFFdef f(): pass")).toBe("def f(): pass");
  });
});

describe("a source that is not one function is rejected", () => {
  test.each([
    ["", "there is no function"],
    ["  \n\n", "there is no function"],
    ["# nothing here", "there is no function"],
    ["x = 1", "there is a statement outside of the function"],
    ["'doc'\ndef f(): pass", "there is a statement outside of the function"],
    ["class C: pass", "there is a class outside of the function"],
    ["def f(): pass\ndef g(): pass", "there is a second function"],
    ["def f(): pass\nasync def g(): pass", "there is a second function"],
    ["def f(): pass\n@a\ndef g(): pass", "there is a statement outside of the function"],
    ["def f(): pass\nf()", "there is a statement outside of the function"],
    ["import os\ndef f(): pass", "there is an import outside of the function"],
    ["def f(): pass\nfrom os import path", "there is an import outside of the function"],
    ["if x:\n    def f(): pass", "there is a statement outside of the function"],
  ])("%j", (source, reason) => {
    expect(refusal(source)).toContain(`This is not the source of a Python function: ${reason}, at line `);
  });

  test("the message says where imports go", () => {
    expect(refusal("import os\ndef f(): pass")).toContain("globalImports");
  });
});

describe("the position of a syntax error", () => {
  test.each([
    ["def f(:\n    pass", 'line 1, column 6: "def f(:"'],
    ["def f():\n    return (1 +\n", 'line 2, column 12: "return (1 +"'],
    ["def f():\n    return 1)\n", 'line 2, column 13: "return 1)"'],
    ["def f():\n    x = 'never\n    return x", 'line 2, column 9: "x = \'never"'],
    ['def f():\n    """never\n    return x', 'line 2, column 5: "\\"\\"\\"never"'],
    ["def f():\n    x = 1\n  y = 2", 'line 3, column 3: "y = 2"'],
    ["def f():\n    x = 1\n      y = 2", 'line 3, column 7: "y = 2"'],
    ["def f():\r\n    x = 1\r\n    y = )\r\n", 'line 3, column 9: "y = )"'],
    ["def f():\nreturn 1", 'line 2, column 1: "return 1"'],
  ])("in %j is %s", (source, place) => {
    expect(refusal(source)).toContain(`, at ${place}`);
  });

  test("refers to the given text, not to the dedented one", () => {
    expect(refusal("\n\n        def f():\n            x = 1\n            y = )\n    ")).toContain(
      'unmatched ")", at line 5, column 17: "y = )"',
    );
    expect(refusal("\n\n        def f():\n            return 'x\n    ")).toContain("at line 4, column 20");
  });
});

test("a long line is cut in the message", () => {
  expect(refusal(`def f(): return ${"x ".repeat(1000)})`).length).toBeLessThan(500);
});

describe("hostile sources", { timeout: 120_000 }, () => {
  test.each([
    ["brackets", `def f(): return ${"(".repeat(100_000)}`],
    ["closed brackets", `def f(): return ${"(".repeat(20_000)}1${")".repeat(20_000)}`],
    ["operators", `def f(): return ${"-".repeat(100_000)}1`],
    ["strings", `def f(): return ${"'a' ".repeat(100_000)}`],
    ["lines", `def f():\n${"    x = 1\n".repeat(50_000)}`],
    ["one long string", `def f(): return '''${"a\\n".repeat(300_000)}'''`],
    ["arguments", `def f(): g(${"a, ".repeat(50_000)})`],
    ["backslashes", `def f(): return '${"\\".repeat(500_000)}`],
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
