import { PythonProblem } from "./python-problem.ts";
import type { PythonToken } from "./python-token.ts";

const space = /[ \t\f]+/y;
const comment = /#[^\n]*/y;
const name = /[\p{XID_Start}_]\p{XID_Continue}*/uy;
const stringStart = /(?:[bB][rR]?|[fFtT][rR]?|[rR][bBfFtT]?|[uU])?(?:"""|'''|"|')/y;
const basedInteger = /0(?:[xX](?:_?[\da-fA-F])+|[oO](?:_?[0-7])+|[bB](?:_?[01])+)/y;
const decimal = /(?:\d(?:_?\d)*\.?(?:\d(?:_?\d)*)?|\.\d(?:_?\d)*)(?:[eE][+-]?\d(?:_?\d)*)?[jJ]?/y;
const operator = /\.\.\.|\*\*=|\/\/=|>>=|<<=|\*\*|\/\/|>>|<<|->|:=|[=!<>+\-*/%@&|^]=|[-+*/%@&|^~<>=.,:;()[\]{}]/y;
const keywordAfterNumber = /(?:and|else|for|if|in|is|not|or)(?!\p{XID_Continue})/uy;
/** CPython's own limit. */
const maximumDepth = 200;
const closers: ReadonlyMap<string, string> = new Map([
  ["(", ")"],
  ["[", "]"],
  ["{", "}"],
]);

/** Cuts Python source into tokens as CPython does, and finds what CPython's tokenizer would not accept. */
export class PythonScanner {
  readonly #text: string;
  #position: number;
  readonly #tokens: PythonToken[] = [];
  readonly #brackets: PythonToken[] = [];

  /** @param text - with `\n` as the only line end. */
  constructor(text: string, position = 0) {
    this.#text = text;
    this.#position = position;
  }

  /**
   * All tokens; the last one of a text that has any is a `newline`.
   *
   * @throws PythonProblem if there is something that is no token, or a bracket without its partner.
   */
  scan(): PythonToken[] {
    while (this.#position < this.#text.length) this.#next();
    const open = this.#brackets.at(-1);
    if (open) throw new PythonProblem(open.from, `"${open.text}" was never closed`);
    this.#endLine(this.#text.length);
    return this.#tokens;
  }

  /** One step: white space, a comment, a line end, or a token. */
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
    } else if (this.#match(basedInteger) !== undefined || this.#match(decimal) !== undefined) {
      this.#number(from);
    } else if (this.#match(operator) === undefined || this.#text.startsWith("<>", from)) {
      const character = String.fromCodePoint(this.#text.codePointAt(from) ?? 0);
      throw new PythonProblem(
        from,
        character === "\\" ? "something follows the backslash" : `unexpected "${character}"`,
      );
    } else {
      this.#operator(from);
    }
  }

  #number(from: number): void {
    const text = this.#text.slice(from, this.#position);
    const zeros = /^0[\d_]*[1-9][\d_]*$/.test(text);
    name.lastIndex = this.#position;
    keywordAfterNumber.lastIndex = this.#position;
    if (zeros || (name.test(this.#text) && !keywordAfterNumber.test(this.#text))) {
      throw new PythonProblem(from, "not a number");
    }
    this.#push("number", from);
  }

  #operator(from: number): void {
    const text = this.#text.slice(from, this.#position);
    if (")]}".includes(text)) {
      const open = this.#brackets.pop();
      if (!open) throw new PythonProblem(from, `nothing is open that "${text}" could close`);
      if (closers.get(open.text) !== text) throw new PythonProblem(from, `"${text}" does not close "${open.text}"`);
    }
    const token = this.#push("operator", from);
    if (closers.has(text)) this.#brackets.push(token);
    if (this.#brackets.length > maximumDepth) throw new PythonProblem(from, "too many brackets in brackets");
  }

  #string(from: number, opening: string): void {
    const quote = /["']+$/.exec(opening)?.[0] ?? "";
    const prefix = opening.slice(0, -quote.length).toLowerCase();
    const isFormatted = /[ft]/.test(prefix);
    const fields = isFormatted ? this.#formatted(from, quote, prefix.includes("r")) : undefined;
    if (!isFormatted) this.#plain(from, quote);
    this.#push("string", from, fields);
  }

  #plain(from: number, quote: string): void {
    while (!this.#text.startsWith(quote, this.#position)) this.#literal(from, quote);
    this.#position += quote.length;
  }

  /** One character or escape of a string. */
  #literal(from: number, quote: string): void {
    const character = this.#text[this.#position];
    const lineEnds = character === "\n" && quote.length === 1;
    this.#position += character === "\\" ? 2 : 1;
    if (lineEnds || this.#position > this.#text.length) throw new PythonProblem(from, "the string never ends");
  }

  #formatted(from: number, quote: string, raw: boolean): (readonly PythonToken[])[] {
    const fields: (readonly PythonToken[])[] = [];
    while (!this.#text.startsWith(quote, this.#position)) {
      const rest = this.#text.slice(this.#position, this.#position + 3);
      if (rest.startsWith("{{") || rest.startsWith("}}")) this.#position += 2;
      else if (rest.startsWith("}")) throw new PythonProblem(this.#position, 'a single "}" in an f-string');
      else if (rest.startsWith("{")) this.#field(from, quote, fields);
      else if (rest === "\\N{" && !raw) this.#skipPast("}", from);
      else if (/^\\[{}]/.test(rest)) this.#position += 1;
      else this.#literal(from, quote);
    }
    this.#position += quote.length;
    return fields;
  }

  #skipPast(end: string, from: number): void {
    const found = this.#text.indexOf(end, this.#position);
    if (found < 0) throw new PythonProblem(from, "the string never ends");
    this.#position = found + end.length;
  }

  /** `{expression=!conversion:specification}`, where the specification may hold fields again. */
  #field(from: number, quote: string, fields: (readonly PythonToken[])[]): void {
    const start = this.#position + 1;
    const inner = new PythonScanner(this.#text, start);
    const tokens = inner.#untilFieldEnds();
    this.#position = inner.#position;
    const last = tokens.at(-1);
    if (last?.text === "=") tokens.pop();
    if (tokens.length === 0) throw new PythonProblem(start, "an f-string field without an expression");
    fields.push(tokens);
    this.#match(/![ \t]*[sra][ \t]*(?=[:}])/y);
    if (this.#match(/:/y) !== undefined) this.#specification(from, quote, fields);
    if (this.#match(/\}/y) === undefined) throw new PythonProblem(start - 1, 'an f-string field without its "}"');
  }

  #specification(from: number, quote: string, fields: (readonly PythonToken[])[]): void {
    while (this.#text[this.#position] !== "}") {
      if (this.#text.startsWith(quote, this.#position)) return;
      if (this.#text[this.#position] === "{") this.#field(from, quote, fields);
      else this.#literal(from, quote);
    }
  }

  #untilFieldEnds(): PythonToken[] {
    const end = /\}|:|!(?!=)/y;
    for (;;) {
      end.lastIndex = this.#position;
      const open = this.#brackets.at(-1);
      if (this.#position >= this.#text.length || (!open && end.test(this.#text))) return this.#tokens;
      this.#next();
      if (this.#tokens.at(-1)?.kind === "newline") this.#tokens.pop();
    }
  }

  #push(kind: PythonToken["kind"], from: number, fields?: readonly (readonly PythonToken[])[]): PythonToken {
    const text = this.#text.slice(from, this.#position);
    const depth = this.#brackets.length;
    const token: PythonToken = { kind, text, from, to: this.#position, depth, ...(fields && { fields }) };
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
