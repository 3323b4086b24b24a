import { CurrentPlace, DirectoryFiles, type Place, PlaceGone } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";

const place: Place = {
  facts: {},
  files: new DirectoryFiles("."),
  run: () => Promise.resolve({ exitCode: 0 }),
  end: () => Promise.resolve(),
};

describe("a place that is lost while it is reset", () => {
  it.each([true, false])(
    "is not reported, since a reset discards its variables (the reset notices: %s)",
    async (notices) => {
      let lose = (_: Error): void => {};
      let opened = 0;
      const open = (): Promise<Place> => {
        opened += 1;
        return Promise.resolve({
          facts: {},
          files: new DirectoryFiles("."),
          lost: new Promise<Error>((resolve) => {
            lose = resolve;
          }),
          run: () => Promise.resolve({ exitCode: 0 }),
          reset: async () => {
            lose(new Error("gone"));
            await new Promise(setImmediate);
            if (notices) throw new PlaceGone("gone");
          },
          end: () => Promise.resolve(),
        });
      };
      const losses: string[] = [];
      const current = new CurrentPlace({ open, close: () => Promise.resolve() }, (reason) => losses.push(reason));
      const { signal } = new AbortController();
      const first = await current.ready(signal);
      await current.reset(signal);
      const second = await current.ready(signal);
      expect([losses, opened, second === first]).toEqual([[], 2, false]);
      // Later losses are reported again.
      lose(new Error("later"));
      await expect.poll(() => losses).toEqual(["later"]);
      await current.close();
    },
  );
});

describe("a place that is being opened", () => {
  /** A backend whose places open when they are told to. */
  function slowBackend() {
    const signals: AbortSignal[] = [];
    const gates: ((opens: boolean) => void)[] = [];
    const open = async ({ signal }: { readonly signal: AbortSignal }): Promise<Place> => {
      signals.push(signal);
      const opens = await new Promise<boolean>((resolve) => {
        gates.push(resolve);
      });
      if (!opens) throw signal.reason;
      return { ...place };
    };
    return { signals, gates, current: new CurrentPlace({ open, close: () => Promise.resolve() }, () => {}) };
  }

  it("stays for those who still wait when its first caller leaves", async () => {
    const { signals, gates, current } = slowBackend();
    const leaving = new AbortController();
    const [first, second] = [current.ready(leaving.signal), current.ready(new AbortController().signal)];
    await expect.poll(() => gates.length).toBe(1);
    leaving.abort(new Error("enough"));
    await expect(first).rejects.toThrow("enough");
    expect(signals[0]?.aborted).toBe(false);
    gates[0]?.(true);
    expect(await second).toBe(current.usable);
    await current.close();
  });

  it("is given up when all have left, and undone before another one is opened", async () => {
    const { signals, gates, current } = slowBackend();
    const leaving = new AbortController();
    const both = [current.ready(leaving.signal), current.ready(leaving.signal)];
    await expect.poll(() => gates.length).toBe(1);
    leaving.abort(new Error("enough"));
    for (const each of both) await expect(each).rejects.toThrow("enough");
    expect(signals[0]?.aborted).toBe(true);
    const next = current.ready(new AbortController().signal);
    await new Promise(setImmediate);
    expect(gates).toHaveLength(1);
    gates[0]?.(false);
    await expect.poll(() => gates.length).toBe(2);
    gates[1]?.(true);
    expect(await next).toBe(current.usable);
    await current.close();
  });
});
