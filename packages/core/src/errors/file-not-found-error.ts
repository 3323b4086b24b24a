import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.file_not_found");

/** A file to read, remove, upload or download does not exist. */
export class FileNotFoundError extends FencedError {
  readonly code = "file_not_found" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is FileNotFoundError {
    return hasErrorMarker(value, marker);
  }
}
