/** What a parser found out about one function. */
export interface FunctionDefinition {
  readonly name: string;
  /** The definition, complete and on the left margin. */
  readonly source: string;
  readonly signature: string;
  readonly docstring: string | undefined;
}
