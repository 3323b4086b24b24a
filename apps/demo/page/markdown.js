/**
 * Shows Markdown that a model wrote, as far as chats use it. Only the elements below are made, with text as text: HTML
 * stays text, nothing is loaded, and a link shows where it leads.
 *
 * Time grows with the length of the text, whatever the model wrote: every pattern stops at the first character that could
 * begin its next match. Libraries take seconds for some texts of a few kilobytes.
 */
import { codeBlock, element } from "./parts.js";

/** Longer texts, and parts that are nested deeper, are shown as they are. */
const [maxLength, maxDepth] = [30_000, 6];

const fence = /^ {0,3}(`{3,}|~{3,})[ \t]*([\w+#-]*)[^`]*$/;
const heading = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const rule = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const quote = /^ {0,3}> ?/;
const item = /^ {0,3}(?:[-*+]|(\d{1,9})[.)])[ \t]+(?=\S)/;
const columns = /^[ \t]*\|?[ \t]*:?-[-:| \t]*$/;

/** Creates the elements for a text. */
export function markdown(text) {
  return text.length > maxLength ? [plain(text)] : blocks(text.split("\n"), 0);
}

/** Shows a text as it is, with its line breaks. */
export function plain(text) {
  return element("p", { class: "plain" }, text.trim());
}

function blocks(lines, depth) {
  if (depth > maxDepth) return [plain(lines.join("\n"))];
  const made = [];
  for (let at = 0; at < lines.length;) {
    const [parts, next] = block(lines, at, depth);
    made.push(...parts);
    at = next;
  }
  return made;
}

/** The elements of the block that begins at a line, and the line after it. */
function block(lines, at, depth) {
  const line = lines[at];
  if (line.trim() === "") return [[], at + 1];
  if (fence.test(line)) return fenced(lines, at);
  if (heading.test(line)) return [[headingOf(line)], at + 1];
  if (rule.test(line)) return [[element("hr")], at + 1];
  if (quote.test(line)) return quoted(lines, at, depth);
  if (item.test(line)) return list(lines, at, depth);
  if (isTable(lines, at)) return table(lines, at);
  const end = endOf(lines, at + 1, (each, place) => each.trim() !== "" && !beginsBlock(lines, place));
  return [[element("p", {}, ...inline(lines.slice(at, end).join("\n"), 0))], end];
}

function beginsBlock(lines, at) {
  return [fence, heading, rule, quote, item].some((each) => each.test(lines[at])) || isTable(lines, at);
}

/** The first line from a place on that does not belong. */
function endOf(lines, start, belongs) {
  let at = start;
  while (at < lines.length && belongs(lines[at], at)) at += 1;
  return at;
}

function fenced(lines, at) {
  const [, marks, language] = fence.exec(lines[at]);
  const isOpen = (line) => !(line.trim().startsWith(marks) && line.trim().replaceAll(marks[0], "") === "");
  const end = endOf(lines, at + 1, isOpen);
  return [[codeBlock(lines.slice(at + 1, end).join("\n"), language)], end + 1];
}

function headingOf(line) {
  const [, marks, text] = heading.exec(line);
  // Below the card's own heading.
  return element(`h${Math.min(6, marks.length + 3)}`, {}, ...inline(text, 0));
}

function quoted(lines, at, depth) {
  const end = endOf(lines, at, (line) => quote.test(line));
  const inner = lines.slice(at, end).map((line) => line.replace(quote, ""));
  return [[element("blockquote", {}, ...blocks(inner, depth + 1))], end];
}

function list(lines, at, depth) {
  const [, number] = item.exec(lines[at]);
  const made = number === undefined ? element("ul") : element("ol", { start: String(Number(number)) });
  let next = at;
  while (next < lines.length && isItem(lines[next], number !== undefined)) {
    const [mark] = item.exec(lines[next]);
    const end = endOf(lines, next + 1, (line, place) => isInside(lines, place));
    const inner = lines.slice(next + 1, end).map((line) => line.slice(Math.min(mark.length, indent(line))));
    made.append(element("li", {}, ...itemParts([lines[next].slice(mark.length), ...inner], depth)));
    next = end;
  }
  return [[made], next];
}

function isItem(line, isNumbered) {
  const [mark] = item.exec(line) ?? [];
  return mark !== undefined && /\d/.test(mark) === isNumbered && !rule.test(line);
}

/** True for an indented line, and for an empty one before it. */
function isInside(lines, at) {
  return lines[at].trim() === "" ? indent(lines[at + 1] ?? "") > 1 : indent(lines[at]) > 1;
}

function indent(line) {
  return /^ */.exec(line)[0].length;
}

/** An item of one paragraph needs no element for it. */
function itemParts(lines, depth) {
  const parts = blocks(lines, depth + 1);
  const [first, ...rest] = parts;
  return first?.tagName === "P" && first.className === "" ? [...first.childNodes, ...rest] : parts;
}

function isTable(lines, at) {
  const next = lines[at + 1] ?? "";
  return lines[at].includes("|") && next.includes("|") && columns.test(next);
}

function table(lines, at) {
  const end = endOf(lines, at + 2, (line) => line.includes("|"));
  const sides = cells(lines[at + 1]).map(sideOf);
  const row = (line, name, attributes) => {
    const made = cells(line).slice(0, sides.length);
    const side = (index) => ({ ...attributes, class: sides[index] });
    return element("tr", {}, ...made.map((text, index) => element(name, side(index), ...inline(text, 0))));
  };
  const head = element("thead", {}, row(lines[at], "th", { scope: "col" }));
  const body = element("tbody", {}, ...lines.slice(at + 2, end).map((line) => row(line, "td", {})));
  const scroller = { class: "table", tabindex: "0", role: "region", "aria-label": "Table" };
  return [[element("div", scroller, element("table", {}, head, body))], end];
}

function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return inner.split(/(?<!\\)\|/).map((text) => text.trim().replaceAll("\\|", "|"));
}

function sideOf(dashes) {
  if (!dashes.endsWith(":")) return "left";
  return dashes.startsWith(":") ? "center" : "right";
}

const spans = new RegExp(
  [
    /\\(?<escaped>[!-/:-@[-`{-~])/,
    /(?<!`)`(?<code>[^`]+)`(?!`)/,
    /\*\*(?=[^\s*])(?<strong>[^*]+)(?<!\s)\*\*/,
    /\*(?=[^\s*])(?<star>[^*]+)(?<!\s)\*/,
    /(?<!\w)_(?=[^\s_])(?<em>[^_]+)(?<!\s)_(?!\w)/,
    /\[(?<label>[^[\]]{1,500})\]\((?<address>https?:\/\/[^\s()<>]{1,1000})\)/,
    /(?<!\w)(?<url>https?:\/\/[^\s()<>"'\]*`]*[^\s()<>"'\]*`.,:;!?])/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "g",
);

function inline(text, depth) {
  if (depth > maxDepth) return [text];
  const parts = [];
  let done = 0;
  for (const found of text.matchAll(spans)) {
    parts.push(text.slice(done, found.index), ...span(found.groups, depth + 1));
    done = found.index + found[0].length;
  }
  return [...parts, text.slice(done)];
}

function span({ escaped, code, strong, star, em = star, label, address, url }, depth) {
  if (escaped !== undefined) return [escaped];
  if (code !== undefined) return [element("code", {}, code)];
  if (strong !== undefined) return [element("strong", {}, ...inline(strong, depth))];
  if (em !== undefined) return [element("em", {}, ...inline(em, depth))];
  return url === undefined ? [link(address, label), ` (${address})`] : [link(url, url)];
}

function link(address, text) {
  if (!URL.canParse(address)) return text;
  return element("a", { href: address, rel: "noopener noreferrer", target: "_blank" }, text);
}
