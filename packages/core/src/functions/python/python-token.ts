/** A token of Python source. Comments, blank lines and line breaks inside brackets produce none. */
export interface PythonToken {
  readonly kind: "name" | "number" | "string" | "operator" | "newline";
  readonly text: string;
  /** Offset of its first character. */
  readonly from: number;
  /** Offset after its last character. */
  readonly to: number;
  /** How many open brackets surround it; a bracket itself counts as outside the text that it encloses. */
  readonly depth: number;
}
