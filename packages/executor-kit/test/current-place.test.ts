import { CurrentPlace, DirectoryFiles, type Place, PlaceGone } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";

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
