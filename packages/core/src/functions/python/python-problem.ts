/** Something in Python source that Python would not accept. It becomes an `InvalidInputError` with line and column. */
export class PythonProblem extends Error {
  /** Where in the text, counted in UTF-16 code units. */
  readonly offset: number;

  constructor(offset: number, reason: string) {
    super(reason);
    this.offset = offset;
  }
}
