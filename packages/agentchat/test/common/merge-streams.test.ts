import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { mergeStreams } from "../../src/common/merge-streams.ts";

async function* listed<T>(...items: readonly T[]): AsyncGenerator<T, void, void> {
  for (const each of items) {
    await new Promise(setImmediate);
    yield each;
  }
}

/** A stream that gives nothing until it is told to end. */
function silent<T>(): { readonly stream: AsyncGenerator<T, void, void>; readonly end: () => void } {
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  // oxlint-disable-next-line require-yield
  const stream = (async function* (): AsyncGenerator<T, void, void> {
    await ended;
  })();
  return { stream, end };
}

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const each of stream) items.push(each);
  return items;
}

it("yields the items of all streams, each stream's in order", async () => {
  const items = await all(mergeStreams([listed(1, 2, 3), listed(11, 12), listed<number>()]));
  expect(items.filter((each) => each < 10)).toEqual([1, 2, 3]);
  expect(items.filter((each) => each > 10)).toEqual([11, 12]);
});

it("closes all streams if one fails, and passes the error on", async () => {
  let closed = false;
  const endless = (async function* (): AsyncGenerator<number, void, void> {
    try {
      for (;;) {
        await new Promise(setImmediate);
        yield 0;
      }
    } finally {
      closed = true;
    }
  })();
  const failing = (async function* (): AsyncGenerator<number, void, void> {
    yield 1;
    throw new Error("broken");
  })();
  await expect(all(mergeStreams([endless, failing]))).rejects.toThrow("broken");
  expect(closed).toBe(true);
});

it("keeps no item in memory while another stream gives none", async () => {
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  if (typeof collect !== "function") throw new TypeError("no garbage collector");
  const seen: WeakRef<object>[] = [];
  let alive = 100;
  const { stream, end } = silent<object>();
  const many = (async function* (): AsyncGenerator<object, void, void> {
    for (let index = 0; index < 100; index += 1) yield { index };
  })();
  for await (const each of mergeStreams([many, stream])) {
    seen.push(new WeakRef(each));
    if (seen.length < 100) continue;
    await new Promise(setImmediate);
    Reflect.apply(collect, undefined, []);
    alive = seen.filter((reference) => reference.deref()).length;
    end();
  }
  expect(alive).toBeLessThan(10);
});
