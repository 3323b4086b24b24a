/** What a parser reads from a function's source. */
export interface FunctionDefinition {
  readonly name: string;
  /** The complete definition, dedented. */
  readonly source: string;
  readonly signature: string;
  readonly docstring: string | undefined;
}
