import { setImmediate } from "node:timers/promises";
import { paced } from "@fenced/executor-kit/supervisor";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

it("lets connections that break at once begin ten at a time, and then one a second", async () => {
  const pace = paced();
  const ending = new AbortController();
  const begins = (): Promise<boolean> =>
    Promise.race([pace(ending.signal).then(() => true), setImmediate(false)]).catch(() => false);
  const begun: boolean[] = [];
  for (let count = 0; count < 10; count += 1) begun.push(await begins());
  expect(begun).toEqual(Array.from({ length: 10 }, () => true));
  expect(await begins()).toBe(false);
  ending.abort();
  await expect(pace(ending.signal)).rejects.toThrow("aborted");
  vi.advanceTimersByTime(1000);
  await pace(new AbortController().signal);
  await expect(pace(ending.signal)).rejects.toThrow("aborted");
});
