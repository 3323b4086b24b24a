/** A token of Python source. Comments, blank lines and line breaks inside brackets make none. */
export interface PythonToken {
  readonly kind: "name" | "number" | "string" | "operator" | "newline";
  readonly text: string;
  /** Offset of its first character. */
  readonly from: number;
  /** Offset behind its last character. */
  readonly to: number;
  /** How many brackets are open around it; a bracket itself counts as outside of what it encloses. */
  readonly depth: number;
}
