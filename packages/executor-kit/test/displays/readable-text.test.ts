import type { MimeBundle } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { htmlText } from "../../src/displays/html-text.ts";
import { readableText } from "../../src/displays/readable-text.ts";

const object = (name: string) => ({ "text/plain": `<IPython.core.display.${name} object>` });
const png = { "image/png": new Uint8Array(1) };
const cases: [string, MimeBundle, string | undefined][] = [
  ["plain text", { "text/plain": "a\nb", "text/html": "<b>c</b>" }, "a\nb"],
  ["an address that is all there is", { "text/plain": "<__main__.A object at 0x7f1>" }, "<__main__.A object at 0x7f1>"],
  ["Markdown", { ...object("Markdown"), "text/markdown": "**4.2**" }, "**4.2**"],
  ["LaTeX", { ...object("Latex"), "text/latex": "$x^2$" }, "$x^2$"],
  ["JSON", { ...object("JSON"), "application/json": { mean: 4.2 } }, '{"mean":4.2}'],
  ["HTML of an object with an address", { "text/plain": "<a.Table at 0x7f1>", "text/html": "<b>Oslo</b>" }, "Oslo"],
  ["another text", { ...object("X"), "text/csv": "a,b" }, "a,b"],
  ["nothing", {}, undefined],
  [
    "a figure by its text",
    { "text/plain": "<Figure size 640x480 with 1 Axes>", ...png },
    "<Figure size 640x480 with 1 Axes>",
  ],
  ["a picture by its name", { ...object("Image"), ...png }, "[PNG image]"],
  [
    "an SVG picture with its texts",
    { "image/svg+xml": "<svg><title>Sales</title><style>a{}</style><text>May</text></svg>" },
    "[SVG image: Sales, May]",
  ],
  ["an SVG picture without", { ...object("SVG"), "image/svg+xml": "<svg/>" }, "[SVG image]"],
  [
    "a plot of plotly",
    {
      "application/vnd.plotly.v1+json": { layout: { title: { text: "Sales" } } },
      "text/html": "<div><script>x</script></div>",
    },
    "[Plotly plot: Sales]",
  ],
  [
    "a plot of Vega-Lite",
    {
      "application/vnd.vegalite.v5.20.1+json": { title: "Sales" },
      "text/plain":
        "<VegaLite 5 object>\n\nIf you see this message, it means the renderer has not been properly enabled",
    },
    "[Vega-Lite plot: Sales]",
  ],
  ["a widget", { "application/vnd.jupyter.widget-view+json": {} }, "[Jupyter widget]"],
  ["a type of an unknown library", { "application/vnd.acme.v2+json": [] }, "[acme output]"],
  ["a script", { ...object("Javascript"), "application/javascript": "1" }, "[JavaScript, not run here]"],
  [
    "sound",
    {
      "text/plain": "<IPython.lib.display.Audio object>",
      "text/html": '<audio controls><source src="data:audio/wav;base64,AAAA" /></audio>',
    },
    "[audio]",
  ],
  ["a document", { "application/pdf": new Uint8Array(1) }, "[PDF document]"],
];

describe("readableText", () => {
  it.each(cases)("reads %s", (_, bundle, text) => {
    expect(readableText(bundle)).toBe(text);
  });
});

describe("htmlText", () => {
  it.each([
    [
      "tables",
      "<table><thead><tr><th>City</th><th>Mean</th></tr></thead><tr><td>Oslo</td><td> 4.2 </td></tr></table>",
      "City | Mean\nOslo | 4.2",
    ],
    ["paragraphs and line breaks", "<h1>Title</h1><p>One<br>two</p>three<b>four</b>", "Title\nOne\ntwo\nthreefour"],
    ["lists", "<ul><li>a</li><li>b</li></ul>", "- a\n- b"],
    ["preformatted text", "<pre>a\n  b</pre>", "a\n  b"],
    ["entities", "a &lt;b&gt; &amp;&nbsp;c &#8364; &#x1F600; &unknown;", "a <b> & c € 😀 &unknown;"],
    [
      "pictures and pages by their description",
      '<img alt="a cat" src="x"><iframe src="https://a.test/"></iframe>',
      "[image: a cat][page: https://a.test/]",
    ],
    [
      "nothing of scripts, styles and comments",
      "<style>a{}</style><script>if (1 < 2) x</script><!-- no --><b>yes</b>",
      "yes",
    ],
    ["text that looks like a tag", "1 < 2 and 3 <4", "1 < 2 and 3 <4"],
    ["attributes with brackets", '<b title="a > b">c</b>', "c"],
    ["what is not closed", "<b>a<script>", "a"],
  ])("reads %s", (_, html, text) => {
    expect(htmlText(html)).toBe(text);
  });

  it("reads any text in time that grows with its length alone", () => {
    for (const piece of [
      "<!--",
      "<script>",
      "<a b='",
      '<a b="',
      "<",
      "<b>x</b>",
      "&#x",
      "<td>",
      "<pre>\n",
      " ",
      "<a =",
      "</",
    ]) {
      expect(htmlText(piece.repeat(1_000_000 / piece.length)).length).toBeLessThan(3_000_000);
    }
  });
});
