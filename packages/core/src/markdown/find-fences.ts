import { GluedFences } from "./glued-fences.ts";
import { type HtmlBlock, htmlBlocks } from "./html-blocks.ts";
import { LineCursor } from "./line-cursor.ts";
import { passListMarker, ThematicBreak } from "./line-starts.ts";

/** A fence in a Markdown text. */
export interface RawFence {
  /** The text after the opening fence, unchanged. */
  readonly info: string;
  /** The lines of code. */
  readonly lines: readonly string[];
  /** True if there is a closing fence. */
  readonly closed: boolean;
}

interface OpenFence {
  readonly type: "fence";
  readonly char: string;
  readonly length: number;
  /** Columns before the opening fence; as many are removed from each line of code. */
  readonly offset: number;
  readonly info: string;
  readonly lines: string[];
  closed: boolean;
}

/** The innermost open block. */
type Leaf =
  | OpenFence
  | { readonly type: "html"; readonly block: HtmlBlock }
  | { readonly type: "indented" }
  | { readonly type: "paragraph"; definitionsOnly: boolean };

interface Container {
  /** The indentation of a list item's lines in columns; `undefined` for a quote. */
  readonly width: number | undefined;
  /** The number of quotes around it. */
  readonly quotesAround: number;
  /** A list item without content so far: a blank line ends it. */
  empty: boolean;
}

interface StartOptions {
  readonly inParagraph: boolean;
  readonly thematicBreak: ThematicBreak;
}

/**
 * Finds the fences of a Markdown text, closed or not, in the order in which they open.
 *
 * Follows the algorithm in CommonMark's appendix, reduced to what affects fences: quotes, lists, and blocks that hide a
 * fence. The time is linear in the text's length, however deep quotes and lists are nested.
 */
export function findRawFences(markdown: string): RawFence[] {
  const lines = markdown
    .replace(/^\uFEFF/, "")
    .replaceAll("\0", "\uFFFD")
    .split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  const finder = new FenceFinder(lines);
  for (const [index, line] of lines.entries()) finder.read(line, index);
  return finder.fences;
}

class FenceFinder {
  readonly fences: OpenFence[] = [];
  readonly #glued: GluedFences;
  /** Open quotes and list items, outermost first. */
  readonly #stack: Container[] = [];
  /** The positions of the quotes in the stack. */
  readonly #quotes: number[] = [];
  #leaf: Leaf | undefined;

  constructor(lines: readonly string[]) {
    this.#glued = new GluedFences(lines);
  }

  read(line: string, index: number): void {
    const cursor = new LineCursor(line);
    const depth = this.#matchContainers(cursor);
    const isInside = depth === this.#stack.length;
    if (isInside && this.#continueLeaf(cursor, index)) return;
    this.#startBlocks(cursor, depth);
  }

  /** Skips the markers of the quotes and lists that continue on this line; returns how many continue. */
  #matchContainers(cursor: LineCursor): number {
    let depth = 0;
    for (;;) {
      const container = this.#stack[depth];
      if (container === undefined) return depth;
      if (cursor.blank) return this.#matchBlank(cursor, container);
      if (container.width === undefined) {
        if (cursor.indented || cursor.char !== ">") return depth;
        passQuoteMark(cursor);
      } else {
        if (cursor.indent < container.width) return depth;
        cursor.skipIndent(container.width);
      }
      depth += 1;
    }
  }

  /** All list items continue over a blank line, up to the next quote. Its white space belongs to them. */
  #matchBlank(cursor: LineCursor, { width, quotesAround }: Container): number {
    if (width !== undefined) cursor.skipPast(0);
    const depth = this.#quotes[quotesAround] ?? this.#stack.length;
    const isEmpty = depth === this.#stack.length && this.#stack.at(-1)?.empty === true;
    return isEmpty ? depth - 1 : depth;
  }

  /**
   * Adds the line to the open fence, HTML or indented code. Returns false if none is open, or if it ends before this
   * line.
   */
  #continueLeaf(cursor: LineCursor, index: number): boolean {
    const leaf = this.#leaf;
    switch (leaf?.type) {
      case "fence":
        this.#continueFence(leaf, cursor, index);
        return true;
      case "html":
        if (leaf.block.end === undefined) return !cursor.blank && (cursor.indented || startFence(cursor) === undefined);
        if (leaf.block.end.test(cursor.remaining)) this.#leaf = undefined;
        return true;
      case "indented":
        return cursor.indented || cursor.blank;
      default:
        return false;
    }
  }

  #continueFence(fence: OpenFence, cursor: LineCursor, index: number): void {
    fence.closed = !cursor.indented && isClosing(cursor.rest, fence);
    if (!fence.closed) {
      cursor.skipIndent(fence.offset);
      const code = cursor.remaining;
      const beforeFence = this.#glued.codeBefore(code, fence, index);
      fence.closed = beforeFence !== undefined;
      fence.lines.push(beforeFence ?? code);
    }
    if (fence.closed) this.#leaf = undefined;
  }

  /** Opens the blocks that begin on this line, after the markers of those that continue. */
  #startBlocks(cursor: LineCursor, matched: number): void {
    const thematicBreak = new ThematicBreak(cursor);
    const isParagraph = this.#leaf?.type === "paragraph" && !cursor.blank;
    let paragraph = isParagraph ? (matched === this.#stack.length ? "inside" : "lazy") : undefined;
    let depth = matched;
    for (;;) {
      const container = this.#startContainer(cursor, { inParagraph: paragraph === "inside", thematicBreak });
      if (container === undefined) break;
      this.#closeTo(depth);
      this.#push(container);
      depth = this.#stack.length;
      paragraph = undefined;
    }
    const isBreak = !cursor.indented && thematicBreak.startsAt(cursor.next);
    const isHeading = isBreak || (paragraph === "inside" && this.#isUnderline(cursor)) || isAtxHeading(cursor);
    const leaf = isHeading ? undefined : startLeaf(cursor, paragraph !== undefined);
    if (leaf?.type === "paragraph" && this.#leaf?.type === "paragraph" && paragraph !== undefined) {
      this.#leaf.definitionsOnly &&= leaf.definitionsOnly;
      return;
    }
    this.#closeTo(depth);
    this.#open(leaf, cursor.blank);
  }

  /** Skips the marker of a quote or list item that begins here; returns the item's width, or `"quote"`. */
  #startContainer(cursor: LineCursor, at: StartOptions): number | "quote" | undefined {
    if (cursor.indented) return undefined;
    if (cursor.char === ">") {
      passQuoteMark(cursor);
      return "quote";
    }
    if (at.inParagraph && this.#isUnderline(cursor)) return undefined;
    if (at.thematicBreak.startsAt(cursor.next)) return undefined;
    return passListMarker(cursor, at.inParagraph);
  }

  /** True for a line that turns the paragraph above into a heading. Link definitions cannot become a heading. */
  #isUnderline(cursor: LineCursor): boolean {
    if (this.#leaf?.type !== "paragraph" || this.#leaf.definitionsOnly) return false;
    return !cursor.indented && /^(?:=+|-+)[ \t]*$/.test(cursor.rest);
  }

  #closeTo(depth: number): void {
    this.#leaf = undefined;
    this.#stack.length = depth;
    while ((this.#quotes.at(-1) ?? -1) >= depth) this.#quotes.pop();
  }

  #push(container: number | "quote"): void {
    this.#fillInnermost();
    const width = container === "quote" ? undefined : container;
    const quotesAround = this.#quotes.length;
    if (width === undefined) this.#quotes.push(this.#stack.length);
    this.#stack.push({ width, quotesAround, empty: true });
  }

  #open(leaf: Leaf | undefined, isBlank: boolean): void {
    if (!isBlank) this.#fillInnermost();
    this.#leaf = leaf;
    if (leaf?.type === "fence") this.fences.push(leaf);
  }

  #fillInnermost(): void {
    const innermost = this.#stack.at(-1);
    if (innermost) innermost.empty = false;
  }
}

function passQuoteMark(cursor: LineCursor): void {
  cursor.skipPast(1);
  cursor.skipIndent(1);
}

/** The fence, code, HTML or paragraph that begins here; `undefined` if none does, or none that stays open. */
function startLeaf(cursor: LineCursor, afterText: boolean): Leaf | undefined {
  if (cursor.blank) return undefined;
  if (cursor.indented) return afterText ? { type: "paragraph", definitionsOnly: false } : { type: "indented" };
  const fence = startFence(cursor);
  if (fence) return fence;
  const html = cursor.char === "<" ? startHtml(cursor.rest, afterText) : undefined;
  if (html === "ended") return undefined;
  return html ?? { type: "paragraph", definitionsOnly: isLinkDefinition(cursor.rest) };
}

function startHtml(rest: string, afterText: boolean): Leaf | "ended" | undefined {
  const block = htmlBlocks.find(({ start, interrupts }) => (interrupts || !afterText) && start.test(rest));
  if (block === undefined) return undefined;
  return block.end?.test(rest) === true ? "ended" : { type: "html", block };
}

function startFence(cursor: LineCursor): OpenFence | undefined {
  const { char, rest } = cursor;
  const length = fenceLength(rest, char);
  const info = rest.slice(length).trim();
  if (length < 3 || (char === "`" && info.includes("`"))) return undefined;
  return { type: "fence", char, length, offset: cursor.indent, info, lines: [], closed: false };
}

function isClosing(rest: string, { char, length }: OpenFence): boolean {
  const found = fenceLength(rest, char);
  return found >= length && rest.slice(found).trim() === "";
}

function fenceLength(text: string, char: string): number {
  if (char !== "`" && char !== "~") return 0;
  let length = 0;
  while (text[length] === char) length += 1;
  return length;
}

function isAtxHeading(cursor: LineCursor): boolean {
  return !cursor.indented && /^#{1,6}(?:[ \t]|$)/.test(cursor.rest);
}

/** `[a]: /b "c"`. Multi-line definitions pass for text, which matters only to a line that underlines them. */
function isLinkDefinition(rest: string): boolean {
  return /^\[[^[\]\\]+\]:[ \t]*[^ \t]+(?:[ \t]+(?:"[^"]*"|'[^']*'|\([^()]*\)))?[ \t]*$/.test(rest);
}
