import { getEventListeners } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { abortable, abortableStream } from "../../src/common/abortable.ts";

const graceMs = 50;
const forever = new Promise<never>(() => {});

describe("abortable", () => {
  it("passes on values and errors, and leaves no listener", async () => {
    const { signal } = new AbortController();
    expect(await abortable(1, { signal, graceMs })).toBe(1);
    expect(await abortable(Promise.resolve(1), { signal: undefined, graceMs })).toBe(1);
    await expect(abortable(Promise.reject(new Error("no")), { signal, graceMs })).rejects.toThrow("no");
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("waits after an abort until the work has ended", async () => {
    const controller = new AbortController();
    let ended = false;
    const work = delay(30).then(() => (ended = true));
    const waiting = abortable(work, { signal: controller.signal, graceMs: 5000 });
    controller.abort("stop");
    await expect(waiting).rejects.toBe("stop");
    expect(ended).toBe(true);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  it("abandons work that ignores the signal", async () => {
    const controller = new AbortController();
    const waiting = abortable(forever, { signal: controller.signal, graceMs });
    controller.abort("stop");
    await expect(waiting).rejects.toBe("stop");
    await expect(abortable(forever, { signal: AbortSignal.abort("early"), graceMs })).rejects.toBe("early");
  });
});

describe("abortableStream", () => {
  it("ends the stream when the consumer leaves", async () => {
    let closed = false;
    async function* numbers(): AsyncGenerator<number> {
      try {
        for (let number = 0; ; number++) yield number;
      } finally {
        closed = true;
      }
    }
    for await (const number of abortableStream(numbers(), { signal: undefined, graceMs })) {
      if (number === 3) break;
    }
    expect(closed).toBe(true);
  });

  it("does not hang on a stream that is stuck", async () => {
    const controller = new AbortController();
    async function* stuck(): AsyncGenerator<number> {
      yield 1;
      await forever;
    }
    const read = async (): Promise<void> => {
      for await (const _ of abortableStream(stuck(), { signal: controller.signal, graceMs })) controller.abort("stop");
    };
    await expect(read()).rejects.toBe("stop");
  });
});
