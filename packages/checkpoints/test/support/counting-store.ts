import type { CheckpointStore } from "@fenced/core";

/** A store, and how many parts of files it was given since the last question. */
export function countingStore(store: CheckpointStore): {
  readonly counted: CheckpointStore;
  readonly puts: () => number;
} {
  let count = 0;
  const counted: CheckpointStore = {
    open: (id) => store.open(id),
    list: () => store.list(),
    delete: (id) => store.delete(id),
    sweep: () => store.sweep(),
    begin: async (options) => {
      const writer = await store.begin(options);
      return {
        has: (part) => writer.has(part),
        put: (bytes) => {
          count += 1;
          return writer.put(bytes);
        },
        commit: (checkpoint) => writer.commit(checkpoint),
        [Symbol.asyncDispose]: () => writer[Symbol.asyncDispose](),
      };
    },
  };
  const puts = (): number => {
    const since = count;
    count = 0;
    return since;
  };
  return { counted, puts };
}
