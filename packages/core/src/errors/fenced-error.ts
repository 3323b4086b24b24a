import { sanitizeTerminalText } from "../text/sanitize-terminal-text.ts";

/** What every error of Fenced is made from, besides its problem sentence. */
export interface FencedErrorOptions {
  /** What the reader should do about it: a full sentence. The message ends with it. */
  readonly remedy: string;
  /** The error that led to this one. */
  readonly cause?: unknown;
}

const marker = Symbol.for("fenced.error");

/** True if `value` was marked by a constructor of the error class named `name`, of any installed copy of Fenced. */
export function hasErrorMarker(value: unknown, name: symbol): boolean {
  return typeof value === "object" && value !== null && Reflect.get(value, name) === true;
}

/**
 * The root of all errors that Fenced throws: a broken backend or a caller's mistake. A program that fails or times
 * out is not an error but a `CodeResult`.
 *
 * Tell errors apart by `code` or with the static `isInstance` of the class, which also works across two installed
 * copies of a package, where `instanceof` does not.
 *
 * @example
 * try {
 *   await executor.executeCodeBlocks(blocks);
 * } catch (error) {
 *   if (FencedError.isInstance(error)) console.error(error.code, error.message);
 * }
 */
export abstract class FencedError extends Error {
  /** A stable, literal name of the kind of error, e.g. `"invalid_input"`. */
  abstract readonly code: string;
  /** What to do about it; also the end of `message`. */
  readonly remedy: string;

  /**
   * Both texts may quote what a remote host, a server or a program said: what would control a terminal is taken out.
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
    Object.defineProperty(this, marker, { value: true });
  }

  /** True for an error of this family, whichever installed copy of the package made it. */
  static isInstance(value: unknown): value is FencedError {
    return hasErrorMarker(value, marker);
  }
}

function asSentence(text: string): string {
  const trimmed = text.trimEnd();
  return /[.!?:]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}
