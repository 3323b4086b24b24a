/** A piece of code and the language it is written in, as a model writes it in a Markdown fence. */
export interface CodeBlock {
  /** The language as the fence names it; case does not matter and aliases are understood (`py`, `python3`, `js`). */
  readonly language: string;
  /** The source text. */
  readonly code: string;
}
