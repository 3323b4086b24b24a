import type { CodeBlock } from "@fenced/core";
import { vi } from "vitest";

export const sh = (code: string): CodeBlock[] => [{ language: "sh", code }];

/** Waits until `check` passes. */
export const eventually = (check: () => unknown) => vi.waitFor(check, { timeout: 60_000 });

/** What a promise is rejected with. */
export const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

/** A promise that the test resolves. */
export function later<T>(): { readonly promise: Promise<T>; readonly give: (value: T) => void } {
  let give: (value: T) => void = () => {};
  const promise = new Promise<T>((resolve) => {
    give = resolve;
  });
  return { promise, give };
}
