import { getEventListeners, once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it, vi } from "vitest";
import { afterMs, followSignals, joinSignals, lateSignal, untilAborted, within } from "../../src/abort/index.ts";

const reason = new Error("the user pressed stop");
const never = new Promise<void>(() => {});

function pending(): { readonly promise: Promise<void>; readonly reject: (error: Error) => void } {
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<void>((_, rejecting) => {
    reject = rejecting;
  });
  return { promise, reject };
}

describe("untilAborted", () => {
  it("returns the promise's outcome, even without a signal, and leaves no listener", async () => {
    const { signal } = new AbortController();
    expect(await untilAborted(Promise.resolve(1), signal)).toBe(1);
    expect(await untilAborted(Promise.resolve(2), undefined)).toBe(2);
    await expect(untilAborted(Promise.reject(reason), signal)).rejects.toBe(reason);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("rejects with the signal's reason, whatever the promise does afterwards", async () => {
    const controller = new AbortController();
    const work = pending();
    const waiting = untilAborted(work.promise, controller.signal);
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    work.reject(new Error("too late, and heard by nobody"));
    await expect(untilAborted(never, controller.signal)).rejects.toBe(reason);
    await expect(untilAborted(Promise.resolve(1), controller.signal)).rejects.toBe(reason);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });
});

describe("joinSignals", () => {
  it("keeps a time limit that nothing else refers to, through a garbage collection", async () => {
    setFlagsFromString("--expose-gc");
    const collect: unknown = runInNewContext("gc");
    if (typeof collect !== "function") throw new TypeError("no garbage collector");
    const joined = joinSignals(new AbortController().signal, AbortSignal.timeout(200));
    const aborted = once(joined, "abort");
    for (let round = 0; round < 3; round += 1) {
      Reflect.apply(collect, undefined, []);
      await sleep(10);
    }
    await aborted;
    expect(joined.reason).toMatchObject({ name: "TimeoutError" });
  });
});

describe("within", () => {
  it("returns the promise's outcome if it is in time, and undefined otherwise", async () => {
    expect(await within(60_000, Promise.resolve(1))).toBe(1);
    expect(await within(Infinity, Promise.resolve(2))).toBe(2);
    expect(await within(1, never)).toBeUndefined();
    await expect(within(60_000, Promise.reject(reason))).rejects.toBe(reason);
  });

  it("does not crash the process if the promise rejects late", async () => {
    const work = pending();
    expect(await within(1, work.promise)).toBeUndefined();
    work.reject(new Error("too late, and heard by nobody"));
    await new Promise(setImmediate);
  });
});

describe("afterMs", () => {
  it("handles infinite, overlong and negative delays", () => {
    vi.useFakeTimers();
    try {
      const action = vi.fn<() => void>();
      afterMs(Infinity, action);
      expect(vi.getTimerCount()).toBe(0);
      const cancel = afterMs(Number.MAX_SAFE_INTEGER, action);
      vi.advanceTimersByTime(1_000_000);
      expect(action).not.toHaveBeenCalled();
      cancel();
      expect(vi.getTimerCount()).toBe(0);
      afterMs(-1, action);
      vi.advanceTimersByTime(1);
      expect(action).toHaveBeenCalledOnce();
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("signals", () => {
  it("can be followed until they are unlinked, and joined", () => {
    const [first, second, follower] = [new AbortController(), new AbortController(), new AbortController()];
    const unlink = followSignals(follower, [first.signal, undefined, second.signal]);
    unlink();
    first.abort(reason);
    expect(follower.signal.aborted).toBe(false);
    followSignals(follower, [second.signal]);
    second.abort(reason);
    expect(follower.signal.reason).toBe(reason);
    expect(joinSignals(undefined, new AbortController().signal).aborted).toBe(false);
    expect(joinSignals(undefined, first.signal).reason).toBe(reason);
  });

  it("can abort some time after another, with its reason", async () => {
    const controller = new AbortController();
    using late = lateSignal(controller.signal, 1);
    controller.abort(reason);
    expect(late.signal.aborted).toBe(false);
    await expect.poll(() => late.signal.aborted).toBe(true);
    expect(late.signal.reason).toBe(reason);
    using later = lateSignal(controller.signal, 1);
    expect(later.signal.aborted).toBe(false);
    await expect.poll(() => later.signal.aborted).toBe(true);
  });
});
