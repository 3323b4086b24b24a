import { PythonProblem } from "./python-problem.ts";
import type { PythonToken } from "./python-token.ts";

const space = /[ \t\f]+/y;
const comment = /#[^\n]*/y;
const name = /[\p{XID_Start}_]\p{XID_Continue}*/uy;
const stringStart = /(?:[bB][rR]?|[fFtT][rR]?|[rR][bBfFtT]?|[uU])?(?:"""|'''|"|')/y;
const number = /\.?\d(?:[eE][+-](?=\d)|[\w.])*/y;
const operator = /\.\.\.|\*\*=|\/\/=|>>=|<<=|\*\*|\/\/|>>|<<|->|:=|[=!<>+\-*/%@&|^]=|[-+*/%@&|^~<>=.,:;()[\]{}]/y;
/** CPython's own limit. */
const maximumDepth = 200;
/** CPython's own limit for nested fields in f-strings. */
const maximumFields = 150;
const closers: ReadonlyMap<string, string> = new Map([
  ["(", ")"],
  ["[", "]"],
  ["{", "}"],
]);

/**
 * Splits Python source into tokens, just well enough to know where strings and brackets end. Python itself checks
 * names, numbers and the content of f-strings.
 */
export class PythonScanner {
  readonly #text: string;
  #position: number;
  readonly #tokens: PythonToken[] = [];
  readonly #brackets: PythonToken[] = [];
  /** The number of f-string fields around the position. */
  #fields: number;

  /** @param text - with `\n` line endings only. */
  constructor(text: string, position = 0, fields = 0) {
    this.#text = text;
    this.#position = position;
    this.#fields = fields;
  }

  /**
   * All tokens; unless there are none, the last one is a `newline`.
   *
   * @throws PythonProblem if something is not a token, or a bracket is unmatched.
   */
  scan(): PythonToken[] {
    while (this.#position < this.#text.length) this.#next();
    const open = this.#brackets.at(-1);
    if (open) throw new PythonProblem(open.from, `"${open.text}" was never closed`);
    this.#endLine(this.#text.length);
    return this.#tokens;
  }

  /** Takes one step: over white space, a comment, a line break, or a token. */
  #next(): void {
    if (this.#match(space) !== undefined || this.#match(comment) !== undefined) return;
    const at = this.#position;
    if (this.#text.startsWith("\\\n", at)) {
      this.#position += 2;
    } else if (this.#text[at] === "\n") {
      this.#position += 1;
      if (this.#brackets.length === 0) this.#endLine(at);
    } else {
      this.#token();
    }
  }

  #endLine(at: number): void {
    const last = this.#tokens.at(-1);
    if (last && last.kind !== "newline") this.#tokens.push({ kind: "newline", text: "", from: at, to: at, depth: 0 });
  }

  #token(): void {
    const from = this.#position;
    const opening = this.#match(stringStart);
    if (opening !== undefined) {
      this.#string(from, opening);
    } else if (this.#match(name) !== undefined) {
      this.#push("name", from);
    } else if (this.#match(number) !== undefined) {
      this.#push("number", from);
    } else if (this.#match(operator) === undefined) {
      const character = String.fromCodePoint(this.#text.codePointAt(from) ?? 0);
      throw new PythonProblem(
        from,
        character === "\\" ? "unexpected character after the backslash" : `unexpected "${character}"`,
      );
    } else {
      this.#operator(from);
    }
  }

  #operator(from: number): void {
    const text = this.#text.slice(from, this.#position);
    if (")]}".includes(text)) {
      const open = this.#brackets.pop();
      if (!open) throw new PythonProblem(from, `unmatched "${text}"`);
      if (closers.get(open.text) !== text) throw new PythonProblem(from, `"${text}" does not close "${open.text}"`);
    }
    const token = this.#push("operator", from);
    if (closers.has(text)) this.#brackets.push(token);
    if (this.#brackets.length > maximumDepth) throw new PythonProblem(from, "brackets are nested too deeply");
  }

  #string(from: number, opening: string): void {
    const quote = /["']+$/.exec(opening)?.[0] ?? "";
    const prefix = opening.slice(0, -quote.length).toLowerCase();
    if (/[ft]/.test(prefix)) this.#formatted(from, quote, prefix.includes("r"));
    else this.#plain(from, quote);
    this.#push("string", from);
  }

  #plain(from: number, quote: string): void {
    while (!this.#text.startsWith(quote, this.#position)) this.#literal(from, quote);
    this.#position += quote.length;
  }

  /** Reads one character or escape of a string. */
  #literal(from: number, quote: string): void {
    const character = this.#text[this.#position];
    const lineEnds = character === "\n" && quote.length === 1;
    this.#position += character === "\\" ? 2 : 1;
    if (lineEnds || this.#position > this.#text.length) throw new PythonProblem(from, "the string is never closed");
  }

  #formatted(from: number, quote: string, raw: boolean): void {
    while (!this.#text.startsWith(quote, this.#position)) {
      const rest = this.#text.slice(this.#position, this.#position + 3);
      if (rest.startsWith("{{") || rest.startsWith("}}")) this.#position += 2;
      else if (rest.startsWith("}")) throw new PythonProblem(this.#position, 'a single "}" in an f-string');
      else if (rest.startsWith("{")) this.#field(from, quote);
      else if (rest === "\\N{" && !raw) this.#skipPast("}", from);
      else if (/^\\[{}]/.test(rest)) this.#position += 1;
      else this.#literal(from, quote);
    }
    this.#position += quote.length;
  }

  #skipPast(end: string, from: number): void {
    const found = this.#text.indexOf(end, this.#position);
    if (found < 0) throw new PythonProblem(from, "the string is never closed");
    this.#position = found + end.length;
  }

  /** Reads `{expression=!conversion:specification}`; the specification may contain fields, too. */
  #field(from: number, quote: string): void {
    const start = this.#position + 1;
    this.#fields += 1;
    if (this.#fields > maximumFields) throw new PythonProblem(from, "f-string fields are nested too deeply");
    const inner = new PythonScanner(this.#text, start, this.#fields);
    inner.#skipField();
    this.#position = inner.#position;
    this.#match(/![ \t]*\w*[ \t]*(?=[:}])/y);
    if (this.#match(/:/y) !== undefined) this.#specification(from, quote);
    if (this.#match(/\}/y) === undefined) throw new PythonProblem(start - 1, 'an f-string field has no closing "}"');
    this.#fields -= 1;
  }

  #specification(from: number, quote: string): void {
    while (this.#text[this.#position] !== "}") {
      if (this.#text.startsWith(quote, this.#position)) return;
      if (this.#text[this.#position] === "{") this.#field(from, quote);
      else this.#literal(from, quote);
    }
  }

  /** Skips the expression of a field, up to its conversion, specification or end. */
  #skipField(): void {
    const end = /\}|:|!(?!=)/y;
    for (;;) {
      end.lastIndex = this.#position;
      if (this.#position >= this.#text.length || (this.#brackets.length === 0 && end.test(this.#text))) return;
      this.#next();
    }
  }

  #push(kind: PythonToken["kind"], from: number): PythonToken {
    const text = this.#text.slice(from, this.#position);
    const token: PythonToken = { kind, text, from, to: this.#position, depth: this.#brackets.length };
    this.#tokens.push(token);
    return token;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#position;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#position += found.length;
    return found;
  }
}
