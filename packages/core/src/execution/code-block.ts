/** A piece of code and its language, as a model writes them in a Markdown fence. */
export interface CodeBlock {
  /** The language, as the fence names it. Case does not matter, and aliases are accepted (`py`, `python3`, `js`). */
  readonly language: string;
  /** The source code. */
  readonly code: string;
}
