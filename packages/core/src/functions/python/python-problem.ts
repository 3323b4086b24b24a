/** A place in Python source that Python would reject. It becomes an `InvalidInputError` with line and column. */
export class PythonProblem extends Error {
  /** Offset in the text, in UTF-16 code units. */
  readonly offset: number;

  constructor(offset: number, reason: string) {
    super(reason);
    this.offset = offset;
  }
}
