import { FencedError, hasErrorCode } from "./fenced-error.ts";

/** A file to read, remove, upload or download does not exist. */
export class FileNotFoundError extends FencedError {
  readonly code = "file_not_found" as const;

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is FileNotFoundError {
    return hasErrorCode(value, "file_not_found");
  }
}
