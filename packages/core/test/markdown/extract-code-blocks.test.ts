import { describe, expect, test } from "vitest";
import { extractCodeBlocks, findFences, InvalidInputError } from "../../src/index.ts";

/** The code of each block of a text given line by line. */
function codes(...lines: string[]): string[] {
  return extractCodeBlocks(lines.join("\n")).map((block) => block.code);
}

/** The language of the block that has this info string. */
function language(info: string, fence = "```"): string | undefined {
  return extractCodeBlocks(`${fence}${info}\nx\n${fence}\n`)[0]?.language;
}

describe("fences", () => {
  test.each([
    ["backticks", ["```", "<", " >", "```"], ["<\n >"]],
    ["tildes", ["~~~", "<", " >", "~~~"], ["<\n >"]],
    ["two backticks are not a fence", ["``", "a", "``"], []],
    ["two tildes are not a fence", ["~~", "a", "~~"], []],
    ["tildes do not close backticks", ["```", "a", "~~~", "```"], ["a\n~~~"]],
    ["backticks do not close tildes", ["~~~", "a", "```", "~~~"], ["a\n```"]],
    ["a shorter fence does not close", ["````", "```", "a", "```", "````"], ["```\na\n```"]],
    ["a longer fence closes", ["```", "a", "``````"], ["a"]],
    ["a shorter tilde fence does not close", ["~~~~", "a", "~~~", "~~~~"], ["a\n~~~"]],
    ["only blank lines inside", ["```", "", "  ", "```"], ["\n  "]],
    ["nothing inside", ["```", "```"], [""]],
    ["blank lines at the end are kept", ["```", "a", "", "", "```"], ["a\n\n"]],
    ["one space of indentation", [" ```", " a", "a", "```"], ["a\na"]],
    ["two spaces of indentation", ["  ```", "a", "   a", "a", "  ```"], ["a\n a\na"]],
    ["three spaces of indentation", ["   ```", "   a", "    a", "  a", "   ```"], ["a\n a\na"]],
    ["two spaces of indentation before tildes", ["  ~~~", "   a", "~~~"], [" a"]],
    ["a tab counts as the columns it fills", ["  ```", "\ta", "```"], ["  a"]],
    ["four spaces of indentation and more", ["    ```", "    a", "      b", "    ```"], ["a\n  b"]],
    ["a tab of indentation", ["\t```", "\ta", "\t\tb", "\t```"], ["a\n\tb"]],
    ["the closing fence may be indented by three", ["```", "a", "   ```"], ["a"]],
    ["the closing fence may be indented differently from the opening one", ["   ```", "a", " ```"], ["a"]],
    ["the closing fence may not be indented by four", ["```", "a", "    ```", "```"], ["a\n    ```"]],
    ["spaces and tabs may follow the closing fence", ["```", "a", "``` \t "], ["a"]],
    ["no space inside the opening fence", ["``` ```", "a"], []],
    ["no space inside the closing fence", ["~~~~~~", "a", "~~~ ~~~", "~~~~~~"], ["a\n~~~ ~~~"]],
    ["no info string after the closing fence", ["```", "``` a", "```"], ["``` a"]],
    ["no backticks in the info string of backticks", ["``` a ```", "b"], []],
    ["backticks in the info string of tildes", ["~~~ a ``` ~~~", "b", "~~~"], ["b"]],
    ["between lines of a paragraph", ["a", "```", "b", "```", "c"], ["b"]],
    ["between two headings", ["a", "---", "~~~", "b", "~~~", "# c"], ["b"]],
    ["Markdown inside is text", ["```", "# a", "> b", "- c", "[d]: e", "```"], ["# a\n> b\n- c\n[d]: e"]],
  ])("%s", (_rule, lines, expected) => {
    expect(codes(...lines)).toEqual(expected);
  });

  test("several blocks are returned in order of appearance", () => {
    expect(extractCodeBlocks("```py\n1\n```\n- ~~~sh\n  2\n  ~~~\n> ```js\n> 3\n> ```\n````py\n4\n````")).toEqual([
      { language: "py", code: "1" },
      { language: "sh", code: "2" },
      { language: "js", code: "3" },
      { language: "py", code: "4" },
    ]);
  });

  test("text without fences has no blocks", () => {
    expect(codes("")).toEqual([]);
    expect(codes("Just words and `inline` code.")).toEqual([]);
  });
});

describe("a fence that never closes is not a block", () => {
  test.each([
    ["nothing after the fence", ["```python"]],
    ["the text ends", ["```python", "print(1)"]],
    ["the text ends with a line break", ["```python", "print(1)", ""]],
    ["the text ends with blank lines", ["```python", "print(1)", "", "", ""]],
    ["the closing fence is cut", ["```python", "print(1)", "``"]],
    ["the closing fence is too short", ["````python", "print(1)", "```"]],
    ["the last line only looks like a fence", ["```python", "print(1)", "    ```"]],
    ["the last line is a fence with words", ["```python", "print(1)", "```python"]],
    ["the quote ends", ["> ```python", "> print(1)", "", "words"]],
    ["the quote ends and a fence follows", ["> ```python", "> print(1)", "```"]],
    ["the list item ends", ["- ```python", "  print(1)", "", "words"]],
    ["the next item begins", ["- ```python", "  print(1)", "- words"]],
    ["a quote in an item ends", ["- > ```python", "  > print(1)", "  words"]],
    ["an item in a quote ends", ["> - ```python", "    ```"]],
  ])("%s", (_case, lines) => {
    expect(codes(...lines)).toEqual([]);
  });

  test("blocks before it are found", () => {
    expect(codes("```", "a", "```", "```", "b")).toEqual(["a"]);
  });

  test("blocks after it are found if it ended with its container", () => {
    expect(codes("> ```", "> a", "", "```", "b", "```")).toEqual(["b"]);
  });
});

describe("a fence at the end of the last line of code", () => {
  test.each([
    ["closes the block", ["```python", "print(1)```"], ["print(1)"]],
    ["closes it after a space", ["```python", "print(1) ```  "], ["print(1)"]],
    ["closes it with text below", ["```python", "print(1)```", "", "It prints 1."], ["print(1)"]],
    ["closes it in a list", ["1. Run:", "   ```python", "   if x:", "       y()```", "2. Look."], ["if x:\n    y()"]],
    ["closes it in a quote", ["> ```python", "> print(1)```", "", "words"], ["print(1)"]],
    ["closes two blocks", ["```python", "a()```", "and", "```python", "b()```"], ["a()", "b()"]],
    ["closes it before a fence that is closed", ["```python", "a()```", "and", "```sh", "b", "```"], ["a()", "b"]],
    ["closes it before a fence that never closes", ["```python", "a()```", "and", "```sh", "b"], ["a()"]],
    ["is code if a closing fence follows", ["```python", 's = """', "a```", '"""', "```"], ['s = """\na```\n"""']],
    ["is code on a line with another fence", ["```python", "# write ```x```"], []],
    ["is code on the opening line", ["```python print(1)```"], []],
    ["is code with only marks before it", ["```python", "- ```"], []],
    ["is code in a tilde fence", ["~~~python", "print(1)~~~"], []],
    ["is code if it is shorter than the opening fence", ["````python", "print(1)```"], []],
  ])("%s", (_case, lines, expected) => {
    expect(codes(...lines)).toEqual(expected);
  });
});

describe("findFences", () => {
  test("includes fences that never close", () => {
    expect(findFences("```py\n1\n```\n> ~~~ sh\n> 2\n\n```js\n3\n")).toEqual([
      { language: "py", code: "1", closed: true },
      { language: "sh", code: "2", closed: false },
      { language: "js", code: "3", closed: false },
    ]);
  });
});

describe("lists and quotes", () => {
  test.each([
    ["in a bullet item", ["- text", "", "  ```", "  if x:", "      y", "  ```"], ["if x:\n    y"]],
    ["right after the bullet", ["* ```", "  a", "  ```"], ["a"]],
    ["in a numbered item", ["10. text", "    ```", "    a", "      b", "    ```"], ["a\n  b"]],
    ["in an item of an item", ["1. a", "   - b", "     ~~~", "     c", "     ~~~"], ["c"]],
    ["after a tab", ["-\ttext", "", "\t```", "\ta", "\t```"], ["a"]],
    ["in each item", ["- ```", "  a", "  ```", "- ```", "  b", "  ```"], ["a", "b"]],
    ["at the margin, which ends the list", ["- text", "```", "a", "```"], ["a"]],
    ["four spaces too deep in an item", ["- text", "", "      ```", "      a", "      ```"], ["a"]],
    ["in a numbered item, by four spaces", ["1. text", "", "    ```", "    a", "      b", "    ```"], ["a\n  b"]],
    ["closed outside the item", ["- ```", "  a", "```"], ["a"]],
    ["with code left of the item", ["1. text", "   ```", "a", "  b", "   ```", "2. text"], ["a\nb"]],
    ["a blank line in the code of an item", ["- ```", "  a", "", "  b", "  ```"], ["a\n\nb"]],
    ["in a quote", ["> ```", "> a", ">  b", ">", "> c", "> ```"], ["a\n b\n\nc"]],
    ["in a quote without spaces", [">```", ">a", ">```"], ["a"]],
    ["in a quote of a quote", ["> > ```", "> > a", ">> ```"], ["a"]],
    ["in a quote of an item", ["- > ```", "  > a", "  > ```"], ["a"]],
    ["in an item of a quote", ["> 1. ```", ">    a", ">    ```"], ["a"]],
    // The first fence stays open; the second one opens in a new quote and closes there.
    ["an unquoted line ends quote and code", ["> ```", "> a", "b", "> ```", "> c", "> ```"], ["c"]],
  ])("%s", (_case, lines, expected) => {
    expect(codes(...lines)).toEqual(expected);
  });
});

describe("text that is not a fence, and text that must not hide one", () => {
  test.each([
    ["indented code", ["words", "", "    print(1)", "    print(2)"], []],
    ["indented code at the start", ["    print(1)"], []],
    ["inline code over several lines", ["a `b", "```c` d"], []],
    ["a tag directly above does not hide a fence", ["<answer>", "```", "a", "```", "</answer>"], ["a"]],
    ["nor does a closing one", ["</think>", "```", "a", "```", "<details>", "```", "b", "```"], ["a", "b"]],
    ["nor an HTML block of several lines", ["<details>", "<summary>x</summary>", "~~~", "a", "~~~"], ["a"]],
    ["an HTML block ends at its blank line", ["<div>", "", "```", "a", "```", "", "</div>"], ["a"]],
    ["a byte order mark does not hide a fence", ["\ufeff```", "a", "```"], ["a"]],
    ["nor <pre>", ["<pre>", "", "```", "a", "```", "</pre>"], ["a"]],
    ["nor a comment", ["<!--", "```", "a", "```", "", "-->"], ["a"]],
    ["inline HTML does not hide a fence", ["some <b>", "```", "a", "```"], ["a"]],
    ["HTML inside a fence stays code", ["```", "<!--", "```", "-->"], ["<!--"]],
    ["a table before a fence", ["| a | b |", "|---|---|", "| 1 | 2 |", "```", "c", "```"], ["c"]],
    ["a fence in a table cell", ["| a |", "|---|", "| ``` |", "| b |", "| ``` |"], []],
    ["a link definition before a fence", ["[a]: /b", "```", "c", "```"], ["c"]],
    ["an escaped fence", ["\\```", "a", "\\```"], []],
    ["a tilde fence in a backtick fence", ["```", "~~~", "a", "~~~", "```"], ["~~~\na\n~~~"]],
  ])("%s", (_case, lines, expected) => {
    expect(codes(...lines)).toEqual(expected);
  });
});

describe("line ends", () => {
  test.each(["\r\n", "\r", "\n"])("%j", (lineEnd) => {
    const text = ["- a", "  ```python", "  b", "", "  c", "  ```", "d", ""].join(lineEnd);
    expect(extractCodeBlocks(text)).toEqual([{ language: "python", code: "b\n\nc" }]);
  });

  test("mixed", () => {
    expect(extractCodeBlocks("```py\r\na\nb\r\n```")).toEqual([{ language: "py", code: "a\nb" }]);
  });

  test("no line break after the last fence", () => {
    expect(codes("```", "a", "```")).toEqual(["a"]);
  });
});

describe("the language", () => {
  test.each([
    ["", ""],
    ["   ", ""],
    ["python", "python"],
    ["  python  ", "python"],
    ["\tpython", "python"],
    ["Python3", "Python3"],
    ['python title="x"', "python"],
    ["python\tlinenos", "python"],
    ["python{1,3}", "python"],
    ["python,norun", "python"],
    ["python:src/main.py", "python"],
    ["c++", "c++"],
    ["objective-c", "objective-c"],
    ["f#", "f#"],
    ["{.python}", "python"],
    ["{ .python .numberLines }", "python"],
    ['{#id .python key="a b"}', "python"],
    ["{python}", "python"],
    ["{python, echo=FALSE}", "python"],
    ["{#id}", ""],
    ["{}", ""],
  ])("of %j is %j", (info, expected) => {
    expect(language(info)).toBe(expected);
    expect(language(info, "~~~~")).toBe(expected);
  });
});

describe("hostile text", { timeout: 120_000 }, () => {
  const size = 1_000_000;

  test.each([
    ["backticks", "`".repeat(size)],
    ["tildes", "~".repeat(size)],
    ["fences", "```\n".repeat(size / 4)],
    ["open fences", "```a\n".repeat(size / 5)],
    ["quotes in quotes", ">".repeat(size)],
    ["lists in lists", "1. ".repeat(size / 3)],
    ["quotes in lists in quotes", "> - ".repeat(size / 4)],
    ["fences in quotes", "> ```\n".repeat(size / 6)],
    ["brackets", "[".repeat(size)],
    ["definitions", "[a]: ".repeat(size / 5)],
    ["tags", "<a ".repeat(size / 3)],
    ["spaces", " ".repeat(size)],
    ["lists in lists, and blank lines", `${"- ".repeat(size / 4)}a\n${"\n".repeat(size / 2)}`],
    ["bullets", "- ".repeat(size / 2)],
    ["stars", "* ".repeat(size / 2)],
    ["items, and white space", `${"1. ".repeat(size / 6)}${" ".repeat(size / 2)}`],
    ["backticks before a backtick", `${"`".repeat(size - 2)} \``],
    ["glued fences", "```a\nb```\n".repeat(size / 10)],
    ["code with backticks in it", `\`\`\`\n${"` ".repeat(size / 2)}`],
    ["code with fences in it", `\`\`\`\n${"a```\n".repeat(size / 5)}`],
    ["braces in an info string", `\`\`\`{${" ".repeat(size)}\n\`\`\``],
  ])("a megabyte of %s is parsed", (_what, text) => {
    expect(extractCodeBlocks(text).every((block) => typeof block.code === "string")).toBe(true);
  });

  test("a fence in a thousand nested quotes is found", () => {
    const deep = "> ".repeat(1000);
    expect(codes(`${deep}\`\`\`py`, `${deep}a`, `${deep}\`\`\``)).toEqual(["a"]);
  });
});

test.each([[undefined], [5], [["```"]], [null]])("a value that is not a string is rejected: %j", (markdown) => {
  const untyped: { extract(text: unknown): unknown; find(text: unknown): unknown } = {
    extract: extractCodeBlocks,
    find: findFences,
  };
  for (const call of [() => untyped.extract(markdown), () => untyped.find(markdown)]) {
    expect(call).toThrow(InvalidInputError);
    expect(call).toThrow(/"markdown" .* It must be a string\./);
  }
});
