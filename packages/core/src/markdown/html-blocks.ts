const attribute = String.raw`\s+[a-zA-Z_:][\w:.-]*(?:\s*=\s*(?:[^"'=<>\x60\x00-\x20]+|'[^']*'|"[^"]*"))?`;
const tag = String.raw`<(?:[A-Za-z][A-Za-z0-9-]*(?:${attribute})*\s*\/?|\/[A-Za-z][A-Za-z0-9-]*\s*)>`;
const blockTags =
  "address article aside base basefont blockquote body caption center col colgroup dd details dialog dir div dl dt " +
  "fieldset figcaption figure footer form frame frameset h[123456] head header hr html iframe legend li link main " +
  "menu menuitem nav noframes ol optgroup option p param search section summary table tbody td tfoot th thead title tr " +
  "track ul";

/** How an HTML block begins, and how it ends: with a line that matches `end` or, without `end`, before a blank line. */
export interface HtmlBlock {
  readonly start: RegExp;
  readonly end?: RegExp;
  /** It can interrupt a paragraph. */
  readonly interrupts: boolean;
}

/** CommonMark's seven kinds of HTML blocks, in its order. Fences inside those with an `end` are ignored. */
export const htmlBlocks: readonly HtmlBlock[] = [
  {
    start: /^<(?:script|pre|textarea|style)(?:\s|>|$)/i,
    end: /<\/(?:script|pre|textarea|style)>/i,
    interrupts: true,
  },
  { start: /^<!--/, end: /-->/, interrupts: true },
  { start: /^<\?/, end: /\?>/, interrupts: true },
  { start: /^<![A-Za-z]/, end: />/, interrupts: true },
  { start: /^<!\[CDATA\[/, end: /\]\]>/, interrupts: true },
  {
    start: new RegExp(String.raw`^<\/?(?:${blockTags.replaceAll(" ", "|")})(?:\s|\/?>|$)`, "i"),
    interrupts: true,
  },
  { start: new RegExp(String.raw`^${tag}\s*$`), interrupts: false },
];
