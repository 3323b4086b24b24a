import { sanitizeTerminalText } from "../text/sanitize-terminal-text.ts";

/** Options of a `FencedError`. */
export interface FencedErrorOptions {
  /** What to do about it, as a full sentence. The message ends with it. */
  readonly remedy: string;
  /** The caller's option that the remedy is about, if it is about one: `pull`. */
  readonly option?: string;
  /** The error that caused this one. */
  readonly cause?: unknown;
}

const marker = Symbol.for("fenced.error");

/**
 * The base class of all errors that Fenced throws, for broken backends and callers' mistakes. A program that fails or
 * times out is not an error: it returns a `CodeResult`.
 *
 * Tell errors apart by `code` or with the class's static `isInstance`, which also works across two installed copies of
 * a package, where `instanceof` does not.
 *
 * @example
 * try {
 *   await executor.executeCodeBlocks(blocks);
 * } catch (error) {
 *   if (FencedError.isInstance(error)) console.error(error.code, error.message);
 * }
 */
export abstract class FencedError extends Error {
  /** A stable identifier of the kind of error, e.g. `"invalid_input"`. */
  abstract readonly code: string;
  /** What to do about it; `message` ends with it. */
  readonly remedy: string;
  /** The option that the remedy is about, for programs that call it something else. Absent if it is about none. */
  declare readonly option?: string;

  /**
   * Removes terminal control sequences from both texts, since they may quote a remote host, a server or a program.
   *
   * @param problem - what is wrong, with the names and values involved.
   * @param options - the remedy, and the cause if there is one.
   */
  constructor(problem: string, options: FencedErrorOptions) {
    const remedy = sanitizeTerminalText(options.remedy);
    super(
      `${asSentence(sanitizeTerminalText(problem))} ${remedy}`,
      "cause" in options ? { cause: options.cause } : undefined,
    );
    this.name = new.target.name;
    this.remedy = remedy;
    if (options.option !== undefined) this.option = options.option;
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for any error of Fenced, even from another installed copy of the package. */
  static isInstance(value: unknown): value is FencedError {
    return typeof value === "object" && value !== null && Reflect.get(value, marker) === true;
  }
}

/**
 * True for an error of Fenced with this `code`, even from another installed copy of the package. For `isInstance` of
 * your own subclasses of `FencedError`.
 */
export function hasErrorCode(value: unknown, code: string): boolean {
  return FencedError.isInstance(value) && value.code === code;
}

function asSentence(text: string): string {
  const trimmed = text.trimEnd();
  return /[.!?:]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}
