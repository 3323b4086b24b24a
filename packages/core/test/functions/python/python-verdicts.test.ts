import { execFileSync } from "node:child_process";
import { needs } from "@fenced/test-support";
import { describe, expect, test } from "vitest";
import { FunctionWithRequirements, InvalidInputError } from "../../../src/index.ts";
import { accepted, docstrings, refusedAtOnce, refusedByPython } from "./python-sources.ts";

/** Why the source is rejected; `undefined` if it is not. */
function refusal(source: string): string | undefined {
  try {
    FunctionWithRequirements.fromString(source);
    return undefined;
  } catch (error) {
    if (InvalidInputError.isInstance(error)) return error.message;
    throw error;
  }
}

describe("sources that Python accepts are accepted", () => {
  test.each(accepted.map(([source]) => source))("%j", (source) => {
    expect(refusal(source)).toBeUndefined();
  });

  test("with Windows line ends", () => {
    const sources = accepted.map(([source]) => source.replaceAll("\n", "\r\n"));
    expect(sources.map(refusal).filter((reason) => reason !== undefined)).toEqual([]);
  });

  test("indented as a whole", () => {
    for (const indent of ["  ", "        ", "\t"]) {
      const sources = accepted.map(([source]) => `\n${source.replaceAll(/^(?!\f)/gm, indent)}\n  `);
      expect(sources.map(refusal).filter((reason) => reason !== undefined)).toEqual([]);
    }
  });
});

describe("anything but one function is rejected with the position", () => {
  test.each(refusedAtOnce)("%j", (source) => {
    expect(refusal(source)).toMatch(/, at line \d+, column \d+: "/);
  });
});

test("errors that only Python can find are left to Python", () => {
  expect(refusedByPython.filter((source) => refusal(source) !== undefined)).toEqual([]);
});

describe("CPython agrees", needs("python3"), () => {
  const program = `
import ast, json, sys, warnings
warnings.simplefilter("ignore")
def judge(source):
    try:
        compile(source, "<function>", "exec")
        return None
    except (SyntaxError, ValueError) as error:
        return str(error)
def head(source):
    [function] = ast.parse(source).body
    function.body, function.decorator_list = [], []
    return ast.dump(function)
def compare(source, signature):
    return [ast.get_docstring(ast.parse(source).body[0]), head(source) == head(signature + " pass")]
request = json.load(sys.stdin)
print(json.dumps({
    "version": list(sys.version_info[:2]),
    "verdicts": [judge(source) for source in request.get("judge", [])],
    "comparisons": [compare(*pair) for pair in request.get("compare", [])],
}))`;

  interface Answer {
    readonly version: [number, number];
    readonly verdicts: (string | null)[];
    readonly comparisons: [docstring: string | null, sameHead: boolean][];
  }

  function ask(request: { judge?: readonly string[]; compare?: readonly (readonly [string, string])[] }): Answer {
    const env = { ...process.env, PYTHONIOENCODING: "utf-8" };
    const printed = execFileSync("python3", ["-c", program], { input: JSON.stringify(request), encoding: "utf8", env });
    return JSON.parse(printed) as Answer;
  }

  /** The accepted sources that this machine's Python is new enough for. */
  function known(): string[] {
    const [ownMajor, ownMinor] = ask({}).version;
    return accepted
      .filter(([, [major, minor] = [3, 9]]) => ownMajor > major || (ownMajor === major && ownMinor >= minor))
      .map(([source]) => source);
  }

  test("on accepted sources that its version supports", () => {
    const sources = known();
    const { verdicts } = ask({ judge: sources });
    expect(sources.length).toBeGreaterThan(30);
    expect(sources.filter((_, index) => verdicts[index] !== null)).toEqual([]);
  });

  test("on rejected sources", () => {
    const rejected = [...refusedAtOnce, ...refusedByPython];
    const { verdicts } = ask({ judge: rejected });
    expect(rejected.filter((_, index) => verdicts[index] === null)).toEqual([]);
  });

  test("on signatures", () => {
    const pairs = known().map((source) => [source, FunctionWithRequirements.fromString(source).signature] as const);
    const { comparisons } = ask({ compare: pairs });
    expect(pairs.filter((_, index) => comparisons[index]?.[1] !== true)).toEqual([]);
  });

  test("on docstrings", () => {
    const functions = docstrings.map((first) => FunctionWithRequirements.fromString(`def f():\n    ${first}\n`));
    const { comparisons } = ask({ compare: functions.map(({ source, signature }) => [source, signature]) });
    const expected = comparisons.map(([docstring]) => docstring?.trimEnd() ?? "");
    expect(functions.map(({ docstring }) => docstring ?? "")).toEqual(expected);
  });
});
