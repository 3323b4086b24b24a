/**
 * Reads streams concurrently and yields items in order of arrival. If a stream fails or the consumer leaves, closes all
 * streams before passing that on.
 */
export async function* mergeStreams<T>(
  streams: readonly AsyncGenerator<T, void, void>[],
): AsyncGenerator<T, void, void> {
  const open = new Set(streams);
  // Not a race of promises: each race would stay in memory until the slowest stream gives an item.
  const arrived: Arrival<T>[] = [];
  let wake = (): void => {};
  const ask = (stream: AsyncGenerator<T, void, void>): void => {
    void nextOf(stream).then((arrival) => {
      arrived.push(arrival);
      wake();
    });
  };
  for (const stream of streams) ask(stream);
  try {
    while (open.size > 0) {
      const next = arrived.shift();
      if (!next) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        continue;
      }
      const { stream, step } = next;
      if (!step) throw next.error;
      if (step.done === true) {
        open.delete(stream);
        continue;
      }
      yield step.value;
      ask(stream);
    }
  } finally {
    await Promise.allSettled([...open].map((stream) => stream.return()));
  }
}

/** The next item of a stream, or why there is none. */
interface Arrival<T> {
  readonly stream: AsyncGenerator<T, void, void>;
  readonly step?: IteratorResult<T, void>;
  readonly error?: unknown;
}

async function nextOf<T>(stream: AsyncGenerator<T, void, void>): Promise<Arrival<T>> {
  try {
    return { stream, step: await stream.next() };
  } catch (error) {
    return { stream, error };
  }
}
