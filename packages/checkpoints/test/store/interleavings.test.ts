import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { ObjectStorage, StoredObject } from "../../src/store/object-storage.ts";
import { ObjectStore } from "../../src/store/object-store.ts";

/** Objects in memory. Each operation waits until `next` lets its program go on. */
class SteppedStorage {
  readonly name = "memory";
  readonly objects = new Map<string, { readonly bytes: Uint8Array; readonly modifiedAt: number }>();
  readonly waiting = new Map<string, (() => void)[]>();
  #time = 0;

  /** The storage as one program sees it. */
  of(program: string): ObjectStorage {
    const step = async <T>(action: () => T): Promise<T> => {
      await new Promise<void>((resolve) => {
        this.waiting.set(program, [...(this.waiting.get(program) ?? []), resolve]);
      });
      return action();
    };
    const { objects } = this;
    return {
      name: this.name,
      put: (key, bytes) => step(() => void objects.set(key, { bytes, modifiedAt: (this.#time += 1) })),
      get: (key) => step(() => objects.get(key)?.bytes),
      size: (key) => step(() => objects.get(key)?.bytes.length),
      delete: (key) => step(() => void objects.delete(key)),
      async *list(folder): AsyncGenerator<StoredObject> {
        const found = await step(() => [...objects].filter(([key]) => key.startsWith(folder)));
        for (const [key, { bytes, modifiedAt }] of found) yield { key, size: bytes.length, modifiedAt };
      },
    };
  }
}

/** Runs programs on one storage, and switches from one to the next after so many of its steps. */
async function runTogether(
  storage: SteppedStorage,
  programs: Readonly<Record<string, (store: ObjectStore) => Promise<void>>>,
  switches: readonly number[],
): Promise<number> {
  const running = new Set(Object.keys(programs));
  const failures: unknown[] = [];
  for (const [name, program] of Object.entries(programs)) {
    program(new ObjectStore(storage.of(name)))
      .catch((error: unknown) => failures.push(error))
      .finally(() => running.delete(name));
  }
  const order = Object.keys(programs);
  const left = [...switches];
  let [turn, steps] = [0, 0];
  for (let inTurn = 0; running.size > 0;) {
    await setImmediate();
    const name = order[turn % order.length] ?? "";
    const isOver = !running.has(name);
    if (isOver || inTurn === left[0]) {
      if (!isOver) left.shift();
      [turn, inTurn] = [turn + 1, 0];
      continue;
    }
    const step = storage.waiting.get(name)?.shift();
    if (!step) continue;
    step();
    [inTurn, steps] = [inTurn + 1, steps + 1];
  }
  if (failures.length > 0) throw failures[0];
  return steps;
}

async function write(store: ObjectStore, contents: readonly string[], after?: string): Promise<string> {
  await using writer = await store.begin({ after });
  const entries = [];
  for (const content of contents) {
    const bytes = Buffer.from(content);
    const parts = [await writer.put(bytes)];
    entries.push({ type: "file" as const, path: content, mode: 0, modifiedAt: 0, size: bytes.length, parts });
  }
  return (await writer.commit({ entries, incomplete: [] })).id;
}

async function readAll(store: ObjectStore): Promise<number> {
  let files = 0;
  for (const { id, problem } of await store.list()) {
    expect(problem).toBeUndefined();
    const saved = await store.open(id);
    for await (const entry of saved.entries()) {
      if (entry.type === "file") for (const part of entry.parts) await saved.content(part);
      files += 1;
    }
  }
  return files;
}

/** A storage with a part that a deleted checkpoint needed, and what is left of its sweep if `isCondemned`. */
async function prepared(isCondemned: boolean): Promise<SteppedStorage> {
  const storage = new SteppedStorage();
  await runTogether(
    storage,
    {
      a: async (store) => {
        const id = await write(store, ["shared", "old"]);
        if (isCondemned) {
          await using _ = await store.begin();
          await store.delete(id);
          await store.sweep();
        } else await store.delete(id);
      },
    },
    [],
  );
  return storage;
}

describe("a sweep beside a writer", () => {
  it.each([
    ["of parts that nobody needs", false],
    ["that a killed sweep has begun", true],
  ])("%s loses nothing, whenever one is interrupted by the other", async (_, isCondemned) => {
    const programs = {
      writer: async (store: ObjectStore) => void (await write(store, ["shared", "new"])),
      sweep: async (store: ObjectStore) => {
        await store.sweep();
        await store.sweep();
      },
    };
    const reader = async (store: ObjectStore) => {
      expect(await readAll(store)).toBe(2);
    };
    let schedules = 0;
    for (let first = 0; first < 24; first += 1) {
      for (let second = 0; second < 30; second += 1) {
        const third = (first * 7 + second * 3) % 11;
        for (const order of [programs, { sweep: programs.sweep, writer: programs.writer }]) {
          const storage = await prepared(isCondemned);
          await runTogether(storage, order, [first, second, third]);
          await runTogether(storage, { reader }, []);
          schedules += 1;
        }
      }
    }
    expect(schedules).toBe(1440);
  });

  it("loses nothing if another sweep has just removed the list that it read", async () => {
    for (let first = 0; first < 28; first += 1) {
      for (let third = 0; third < 16; third += 1) {
        const storage = await prepared(true);
        const sweep = async (store: ObjectStore): Promise<void> => void (await store.sweep());
        const writer = async (store: ObjectStore): Promise<void> => void (await write(store, ["shared", "new"]));
        const reader = async (store: ObjectStore): Promise<void> => {
          expect(await readAll(store)).toBe(2);
        };
        await runTogether(storage, { slow: sweep, sweep, writer }, [first, 1000, third]);
        await runTogether(storage, { reader }, []);
      }
    }
  });
});
