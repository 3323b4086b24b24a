import { type Node, Parser } from "commonmark";
import { describe, expect, test } from "vitest";
import { findFences } from "../../src/index.ts";

const containers = ["> ", ">", "- ", "* ", "+ ", "-\t", "1. ", "2. ", "10) ", "-   ", "-      "];
const spaces = ["", "", "", " ", "  ", "   ", "    ", "      ", "\t"];
const contents = [
  "```",
  "```",
  "```py",
  "````",
  "~~~",
  "~~~ a`b",
  "``",
  "``` x ```",
  "```  ",
  "`````",
  "",
  "",
  "",
  "a",
  "b",
  "    a",
  "a  ",
  "-",
  "1.",
  "---",
  "- - -",
  "***",
  "* * *",
  "___",
  "===",
  "# a",
  "#",
  "#a",
  "<div>",
  "</div>",
  "<pre>",
  "</pre>",
  "<!--",
  "-->",
  "<?",
  "?>",
  "<!A",
  "<b>",
  '<b c="d">',
  "</b>",
  "a <b>",
  "[a]: /b",
  "[a]: /b 'c'",
  "\\```",
  "| a |",
  "<![CDATA[",
  "]]>",
  ">",
  "+",
  "2)",
];

describe("agreement with CommonMark", () => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8])(
    "on 5,000 generated texts, series %i",
    (seed) => {
      const random = randomOf(seed);
      let compared = 0;
      for (let count = 0; count < 5000; count++) {
        const text = generate(random);
        // Here a tag alone on a line hides no fence below it.
        if (hasFenceBelowTag(text)) continue;
        compared += 1;
        expect({ text, fences: fencesOf(text) }).toEqual({ text, fences: referenceFences(text) });
      }
      expect(compared).toBeGreaterThan(4000);
    },
    120_000,
  );
});

function generate(random: (below: number) => number): string {
  const pick = (list: readonly string[]): string => list[random(list.length)] ?? "";
  const line = (): string => {
    const marks = Array.from({ length: random(4) }, () => pick(spaces) + pick(containers)).join("");
    return (random(3) === 0 ? "" : marks) + pick(spaces) + pick(contents);
  };
  return Array.from({ length: 1 + random(10) }, line).join("\n");
}

/** A random generator that gives the same numbers for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed * 2654435761;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

interface Found {
  readonly code: string;
  readonly closed: boolean;
}

function fencesOf(markdown: string): Found[] {
  return findFences(markdown).map(({ code, closed }) => ({ code, closed }));
}

/** What the reference implementation finds; where a block ends tells whether it was closed. */
function referenceFences(markdown: string): Found[] {
  const walker = new Parser().parse(markdown).walker();
  const found: Found[] = [];
  for (let step = walker.next(); step !== null; step = walker.next()) {
    if (step.entering && step.node.type === "code_block" && step.node.info !== null) found.push(asFound(step.node));
  }
  return found;
}

function hasFenceBelowTag(markdown: string): boolean {
  const walker = new Parser().parse(markdown).walker();
  for (let step = walker.next(); step !== null; step = walker.next()) {
    const { type, literal } = step.node;
    if (type === "html_block" && /^\s*<(?!pre|[!?])/.test(literal ?? "") && /^ *(?:```|~~~)/m.test(literal ?? "")) {
      return true;
    }
  }
  return false;
}

function asFound({ literal, sourcepos: [[firstLine], [lastLine]] }: Node): Found {
  const text = literal ?? "";
  return { code: text.replace(/\n$/, ""), closed: lastLine - firstLine === text.split("\n").length };
}
