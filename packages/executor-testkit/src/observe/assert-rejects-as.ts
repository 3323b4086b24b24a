import { AssertionError } from "node:assert/strict";

/** A class of Fenced's errors. */
export interface ErrorKind {
  readonly name: string;
  isInstance(value: unknown): boolean;
}

/**
 * Asserts that a promise rejects with an error of this class. The promise should have its own deadline.
 *
 * @param what - what is being tested, for the message.
 * @param reason - what the error's message must contain.
 */
export async function assertRejectsAs(
  kind: ErrorKind,
  what: string,
  promise: PromiseLike<unknown>,
  reason: RegExp = /./,
): Promise<void> {
  const thrown = await Promise.resolve(promise).then(
    (value) => ({ error: undefined, text: `resolved with ${JSON.stringify(value)}` }),
    (error: unknown) => ({ error, text: `rejected with ${String(error)}` }),
  );
  if (!kind.isInstance(thrown.error)) {
    const message = `${what} should reject with ${kind.name}, but ${thrown.text}`;
    throw new AssertionError({ message, actual: thrown.error });
  }
  if (!reason.test(thrown.text)) {
    throw new AssertionError({ message: `${what}: the error should say ${String(reason)}, but ${thrown.text}` });
  }
}
