import { FencedError, hasErrorMarker, type FencedErrorOptions } from "./fenced-error.ts";

const marker = Symbol.for("fenced.error.file_not_found");

/** A file that was to be read, removed, uploaded or downloaded is not there. */
export class FileNotFoundError extends FencedError {
  readonly code = "file_not_found" as const;

  constructor(problem: string, options: FencedErrorOptions) {
    super(problem, options);
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for this kind of error, whichever installed copy of the package made it. */
  static override isInstance(value: unknown): value is FileNotFoundError {
    return hasErrorMarker(value, marker);
  }
}
