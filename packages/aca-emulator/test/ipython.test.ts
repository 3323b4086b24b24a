import { needs } from "@fenced/test-support";
import { describe, expect, it } from "vitest";
import { Client } from "./client.ts";

describe("the value of the last expression", needs("python3"), () => {
  it.for<[string, unknown]>([
    ["6 * 7", 42],
    ["[1, 2.5]", [1, 2.5]],
    ["'text'", "'text'"],
    ["None", null],
    ["True", "True"],
    ["float('nan')", "nan"],
    ["{'b': 1, 'a': None}", "{'b': 1, 'a': None}"],
    ["['%02d-name-of-a-package' % n for n in range(4)]", expect.stringMatching(/^\['00-.*',\n '01-.*'\]$/s)],
  ])("is formatted as IPython prints it: %s", async ([code, value]) => {
    await using client = await Client.open();
    expect((await client.execute(code)).json.result.executionResult).toEqual(value);
  });

  it("lists package names one per line, as AutoGen parses them", async () => {
    await using client = await Client.open();
    const { result } = (await client.executeOlder("[f'package-{n}' for n in range(50)]")).json.properties;
    // As AutoGen's get_available_packages reads it.
    const names = String(result)
      .replaceAll(/^\[|\]$/g, "")
      .split(",\n")
      .map((each) => each.replaceAll(/[ ']/g, ""));
    expect(names).toEqual(Array.from({ length: 50 }, (_, index) => `package-${index}`));
  });
});

describe("!commands and %magics", needs("python3"), () => {
  it("run between lines of Python and inside blocks", async () => {
    await using client = await Client.open();
    const code = String.raw`word = 'there'
!echo hello $word {1 + 1}
for n in range(2):
    !echo round $n
lines = !printf 'a\nb\n'
text = '''
!not a command
%not a magic
'''
%env FENCED_TEST=set
%matplotlib inline
print(lines, text.count('not'), 7 % 4)`;
    expect((await client.execute(code)).json.result).toMatchObject({
      stdout: "hello there 2\nround 0\nround 1\nenv: FENCED_TEST=set\n['a', 'b'] 2 3\n",
      stderr: "",
    });
    expect((await client.execute("%%bash\necho $FENCED_TEST $((6 * 7))")).json.result.stdout).toBe("set 42\n");
    expect((await client.execute("%%time\nword = 1\nword + 1")).json.result.executionResult).toBe(2);
    expect((await client.execute("%cd /tmp\n%pwd")).json.result.executionResult).toBe("'/tmp'");
  });

  it("that are unknown or invalid fail with a reason", async () => {
    await using client = await Client.open();
    expect((await client.execute("x = 1\n%nonsense here")).json.error.message).toContain("`%nonsense` not found");
    expect((await client.execute("x = 1\n%%nonsense")).json.error.message).toMatch(/SyntaxError/);
    const { json } = await client.execute("!true\nx = (1\ny = 2");
    expect(json.error.message).toMatch(/^SyntaxError/);
    expect(json.result.stderr).toMatch(/line [23]/);
  });
});
