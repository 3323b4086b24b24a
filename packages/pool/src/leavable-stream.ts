/**
 * A stream that can be closed while it waits: `return()` aborts the signal passed to `open`, and resolves when the
 * stream has ended. Nothing happens before the first item is requested.
 */
export function leavableStream<Item>(
  open: (left: AbortSignal) => AsyncGenerator<Item, void, void>,
): AsyncIterable<Item> & AsyncIterator<Item, void, void> {
  const left = new AbortController();
  let items: AsyncGenerator<Item, void, void> | undefined;
  return {
    next: () => (items ??= open(left.signal)).next(),
    async return() {
      left.abort();
      await items?.return().catch(() => {});
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
