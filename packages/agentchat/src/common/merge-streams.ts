/**
 * Reads streams concurrently and yields items in order of arrival. If a stream fails or the consumer leaves, closes all
 * streams before passing that on.
 */
export async function* mergeStreams<T>(
  streams: readonly AsyncGenerator<T, void, void>[],
): AsyncGenerator<T, void, void> {
  const steps = new Map(streams.map((stream) => [stream, nextStep(stream)]));
  try {
    while (steps.size > 0) {
      const { stream, step } = await Promise.race(steps.values());
      if (step.done === true) {
        steps.delete(stream);
        continue;
      }
      yield step.value;
      steps.set(stream, nextStep(stream));
    }
  } finally {
    await Promise.allSettled([...steps.keys()].map((stream) => stream.return()));
  }
}

interface Step<T> {
  readonly stream: AsyncGenerator<T, void, void>;
  readonly step: IteratorResult<T, void>;
}

async function nextStep<T>(stream: AsyncGenerator<T, void, void>): Promise<Step<T>> {
  return { stream, step: await stream.next() };
}
