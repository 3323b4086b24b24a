/** Characters of HTML that are read; a page for people is shorter. */
const mostCharacters = 500_000;
/** Elements that show nothing of their content. */
const silent = ["script", "style", "template", "head", "noscript", "metadata", "defs"];
/** Elements that begin and end a line. */
const blocks = new Set(
  "address article aside blockquote body dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html legend li main nav ol p pre section summary table tbody tfoot thead title tr ul".split(
    " ",
  ),
);
const cells = new Set(["td", "th"]);
const media = new Set(["img", "iframe", "audio", "video", "embed", "object", "canvas"]);
/** The named characters that pages use most, as `name character` pairs. */
const entities: ReadonlyMap<string, string> = new Map(
  [
    "amp & lt < gt > quot \" apos ' ndash – mdash — hellip … copy © times × minus − plusmn ± deg ° micro µ middot · bull •",
    "le ≤ ge ≥ ne ≠ larr ← rarr → uarr ↑ darr ↓ laquo « raquo » sect § euro € pound £ sup2 ²",
  ]
    .flatMap((line) => [...line.matchAll(/(\S+) (\S+)/g)])
    .map(([, name = "", character = ""]): [string, string] => [name, character]),
);

/**
 * The text that a person reads in HTML or SVG: lines, cells of tables side by side, pictures by their description. Reads
 * everything once, so its time grows with the length alone.
 */
export function htmlText(html: string): string {
  return new Reader(html.slice(0, mostCharacters)).read();
}

class Reader {
  readonly #html: string;
  readonly #lines: string[] = [];
  /** The pieces of the current line; joined once, so that time grows with the text alone. */
  #line: string[] = [];
  #isBlank = true;
  #endsInSpace = false;
  #preformatted = 0;
  #at = 0;

  constructor(html: string) {
    this.#html = html;
  }

  read(): string {
    while (this.#at < this.#html.length) {
      const open = this.#html.indexOf("<", this.#at);
      const end = open === -1 ? this.#html.length : open;
      this.#text(this.#html.slice(this.#at, end));
      this.#at = end;
      if (open !== -1) this.#markup();
    }
    this.#break();
    return this.#lines.join("\n").trim();
  }

  #text(text: string): void {
    const decoded = text.replaceAll(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z][\da-z]{1,30}));/gi, decodeEntity);
    if (this.#preformatted === 0) {
      const spaced = decoded.replaceAll(/[\s\u00A0]+/g, " ");
      this.#add(this.#isBlank || this.#endsInSpace ? spaced.trimStart() : spaced);
      return;
    }
    const [first = "", ...others] = decoded.split("\n");
    this.#add(first);
    for (const line of others) {
      this.#end();
      this.#add(line);
    }
  }

  #add(text: string): void {
    if (text === "") return;
    this.#line.push(text);
    this.#endsInSpace = text.endsWith(" ");
    this.#isBlank &&= text.trim() === "";
  }

  /** Reads a tag or a comment. One that does not end takes up the rest, as in a browser. */
  #markup(): void {
    const html = this.#html;
    if (html.startsWith("<!--", this.#at)) this.#skipTo("-->", this.#at + 4);
    else if (/^[!?]$/.test(html.charAt(this.#at + 1))) this.#skipTo(">", this.#at + 2);
    else this.#tag(html);
  }

  #tag(html: string): void {
    nameOfTag.lastIndex = this.#at;
    const name = nameOfTag.exec(html);
    if (!name) {
      this.#at += 1;
      this.#add("<");
      return;
    }
    const [start, slash, written = ""] = name;
    const tag = written.toLowerCase();
    const attributes = this.#attributes(this.#at + start.length);
    if (slash === "" && silent.includes(tag)) this.#skipElement(tag);
    else if (tag === "br") this.#break();
    else if (cells.has(tag)) this.#cell(slash !== "");
    else if (media.has(tag)) this.#media(tag, slash !== "", attributes);
    else if (blocks.has(tag) || tag === "text") this.#block(tag, slash !== "");
  }

  /** Reads attributes up to the end of the tag; keeps those that describe it. */
  #attributes(from: number): ReadonlyMap<string, string> {
    const found = new Map<string, string>();
    let at = from;
    for (;;) {
      attribute.lastIndex = at;
      const match = attribute.exec(this.#html);
      if (!match) break;
      at += match[0].length;
      const [, name, double, single, bare] = match;
      if (name !== undefined) found.set(name.toLowerCase(), double ?? single ?? bare ?? "");
    }
    const end = this.#html.indexOf(">", at);
    this.#at = end === -1 ? this.#html.length : end + 1;
    return found;
  }

  #cell(ends: boolean): void {
    if (!ends && !this.#isBlank) this.#add(this.#endsInSpace ? "| " : " | ");
  }

  #media(tag: string, ends: boolean, attributes: ReadonlyMap<string, string>): void {
    if (ends) return;
    const address = attributes.get("src") ?? attributes.get("data") ?? "";
    const named = [attributes.get("alt"), attributes.get("title"), address.startsWith("data:") ? "" : address];
    const description = named.find((each) => each !== undefined && each !== "")?.slice(0, 500);
    this.#add(description === undefined ? `[${names[tag] ?? tag}]` : `[${names[tag] ?? tag}: ${description}]`);
  }

  #block(tag: string, ends: boolean): void {
    this.#break();
    if (tag === "pre") this.#preformatted = Math.max(0, this.#preformatted + (ends ? -1 : 1));
    if (tag === "li" && !ends) this.#line = ["- "];
  }

  #break(): void {
    if (!this.#isBlank) this.#end();
    this.#clear();
  }

  #end(): void {
    this.#lines.push(this.#line.join("").trimEnd());
    this.#clear();
  }

  #clear(): void {
    this.#line = [];
    this.#isBlank = true;
    this.#endsInSpace = false;
  }

  #skipElement(tag: string): void {
    closing[tag] ??= new RegExp(`</${tag}`, "gi");
    const end = closing[tag];
    end.lastIndex = this.#at;
    const match = end.exec(this.#html);
    if (match) this.#skipTo(">", match.index);
    else this.#at = this.#html.length;
  }

  #skipTo(end: string, from: number): void {
    const found = this.#html.indexOf(end, from);
    this.#at = found === -1 ? this.#html.length : found + end.length;
  }
}

const nameOfTag = /<(\/?)([a-z][\da-z]*)(?=[\s/>:-]|$)/iy;
const attribute = /[\s/]*([^\s=>/"'<]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+)))?/y;
const closing: Record<string, RegExp> = {};
const names: Readonly<Record<string, string>> = { img: "image", iframe: "page" };

function decodeEntity(whole: string, decimal?: string, hexadecimal?: string, name?: string): string {
  if (name !== undefined) return name === "nbsp" ? " " : (entities.get(name) ?? whole);
  const code = decimal === undefined ? Number.parseInt(hexadecimal ?? "", 16) : Number(decimal);
  const isCharacter = code > 0x1f && code <= 0x10_ff_ff && !(code >= 0xd8_00 && code <= 0xdf_ff);
  return isCharacter ? String.fromCodePoint(code) : whole;
}
