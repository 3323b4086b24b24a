import { FencedError, hasErrorCode } from "./fenced-error.ts";

/** Another program uses the session, and one at a time may. Nothing was started; the same call may succeed later. */
export class SessionInUseError extends FencedError {
  readonly code = "session_in_use" as const;

  /** True for an error of this class, even from another installed copy of the package. */
  static override isInstance(value: unknown): value is SessionInUseError {
    return hasErrorCode(value, "session_in_use");
  }
}
