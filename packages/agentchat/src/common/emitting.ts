/** Passes an item to the consumer; resolves once the consumer took it, rejects if the consumer has left. */
export type Emit<T> = (item: T) => Promise<void>;

interface Pending<T> {
  readonly item: T;
  readonly taken: () => void;
  readonly refused: (error: Error) => void;
}

/** Yields what `work` emits while it runs, one item after another, and returns or throws its outcome. */
export async function* emitting<T, R>(work: (emit: Emit<T>) => Promise<R>): AsyncGenerator<T, R, void> {
  const pending: Pending<T>[] = [];
  let [wake, left] = [(): void => {}, false];
  const emit: Emit<T> = (item) =>
    new Promise((taken, refused) => {
      if (left) {
        refused(consumerLeft());
        return;
      }
      pending.push({ item, taken, refused });
      wake();
    });
  const state = { isOver: false };
  const end = work(emit).finally(() => {
    state.isOver = true;
    wake();
  });
  // It is awaited below unless the consumer leaves; then it must not count as unhandled.
  end.catch(() => {});
  try {
    for (;;) {
      const next = pending.shift();
      if (next !== undefined) {
        next.taken();
        yield next.item;
      } else if (state.isOver) {
        return await end;
      } else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    left = true;
    for (const { refused } of pending) refused(consumerLeft());
  }
}

function consumerLeft(): Error {
  return new DOMException("The stream was left", "AbortError");
}
