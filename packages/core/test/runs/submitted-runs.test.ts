import { describe, expect, it } from "vitest";
import { untilAborted } from "../../src/abort/index.ts";
import {
  BackendUnavailableError,
  type ExecutionEvent,
  InvalidInputError,
  RunNotFoundError,
  type RunEvent,
  type SubmittedRun,
} from "../../src/index.ts";
import { emptyResult, printed, runsOf, someBlocks } from "../support/submit-stream.ts";

async function collect(run: SubmittedRun, after?: number): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of run.events({ after })) events.push(event);
  return events;
}

function textOf(events: readonly RunEvent[]): string {
  return events.map(({ event }) => ("text" in event ? event.text : "")).join("");
}

/** Yields events of these texts, and a result. */
async function* printing(texts: Iterable<string>): AsyncGenerator<ExecutionEvent> {
  for (const text of texts) yield printed(text);
  yield { type: "result", result: emptyResult };
}

function* numbers(count: number): Generator<string> {
  for (let number = 0; number < count; number += 1) yield `${number}\n`.padEnd(100, ".");
}

describe("the events of a submitted run", () => {
  it("become fewer while nobody reads, and lose nothing", async () => {
    const run = runsOf(() => printing("x".repeat(5000))).submit(someBlocks);
    await run.result();
    const events = await collect(run);
    expect(textOf(events)).toBe("x".repeat(5000));
    expect(events.length).toBeLessThan(5);
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  });

  it("are never changed after they were read", async () => {
    let go: () => void = () => {};
    const gone = new Promise<void>((resolve) => {
      go = resolve;
    });
    const run = runsOf(async function* () {
      yield printed("one");
      await gone;
      yield* printing(["two"]);
    }).submit(someBlocks);
    const early: RunEvent[] = [];
    for await (const event of run.events()) {
      early.push(event);
      if (early.length === 1) go();
    }
    expect(early.map(({ event }) => event)).toEqual([
      printed("one"),
      printed("two"),
      { type: "result", result: emptyResult },
    ]);
    expect(await collect(run, 1)).toEqual(early.slice(1));
  });

  it("are kept from both ends, with a gap that says how many are missing", async () => {
    const all = [...numbers(40_000)];
    const run = runsOf(() => printing(all)).submit(someBlocks);
    await run.result();
    const events = await collect(run);
    const gaps = events.filter(({ event }) => event.type === "gap");
    expect(gaps).toHaveLength(1);
    const [gap] = gaps;
    const at = events.findIndex(({ event }) => event.type === "gap");
    const before = events.slice(0, at);
    const after = events.slice(at + 1);
    expect(gap).toEqual({
      seq: (after[0]?.seq ?? 0) - 1,
      event: { type: "gap", events: (after[0]?.seq ?? 0) - at - 1 },
    });
    expect(all.join("").startsWith(textOf(before))).toBe(true);
    expect(all.join("").endsWith(textOf(after))).toBe(true);
    for (const part of [before, after]) expect(textOf(part).length).toBeGreaterThan(300_000);
    expect(textOf(events).length).toBeLessThan(1_100_000);
    expect(events.at(-1)?.event.type).toBe("result");
    // A reader in the middle of what is missing only misses the rest of it.
    const middle = (gap?.seq ?? 0) - 5;
    expect((await collect(run, middle))[0]).toEqual({ seq: gap?.seq, event: { type: "gap", events: 5 } });
    expect(await collect(run, gap?.seq)).toEqual(after);
  });

  it("end with the run's error, and readers may leave or be aborted without ending it", async () => {
    const failure = new BackendUnavailableError("The backend is gone", { remedy: "Try again." });
    let fail: () => void = () => {};
    const failed = new Promise<void>((resolve) => {
      fail = resolve;
    });
    const run = runsOf(async function* () {
      yield printed("one");
      await failed;
      throw failure;
    }).submit(someBlocks);
    for await (const { event } of run.events()) {
      expect(event).toEqual(printed("one"));
      break;
    }
    const leaving = new AbortController();
    const reading = (async () => {
      for await (const { seq } of run.events({ after: 1, signal: leaving.signal })) expect(seq).toBe(-1);
    })();
    leaving.abort(new Error("enough"));
    await expect(reading).rejects.toThrow("enough");
    expect(run.state).toBe("running");
    fail();
    await expect(run.result()).rejects.toBe(failure);
    await expect(collect(run)).rejects.toBe(failure);
    expect(run.state).toBe("failed");
    await expect(collect(run, -1)).rejects.toThrow(InvalidInputError);
  });
});

describe("submitted runs", () => {
  it("are forgotten when a hundred later ones have ended, but never executed twice", async () => {
    let executed = 0;
    const runs = runsOf(() => {
      executed += 1;
      return printing([]);
    });
    for (let number = 0; number <= 100; number += 1) await runs.submit(someBlocks, { id: `run-${number}` }).result();
    await new Promise(setImmediate);
    expect(runs.runs()).toHaveLength(100);
    expect(() => runs.run("run-0")).toThrow(/"run-0" has ended, and its result is no longer kept/);
    expect(() => runs.run("run-0")).toThrow(RunNotFoundError);
    expect(() => runs.run("another")).toThrow(RunNotFoundError);
    expect(() => runs.submit(someBlocks, { id: "run-0" })).toThrow(InvalidInputError);
    expect(await runs.submit(someBlocks, { id: "run-1" }).result()).toBe(emptyResult);
    expect(executed).toBe(101);
  });

  it("that failed before a block began may be submitted again", async () => {
    let attempts = 0;
    const runs = runsOf(async function* () {
      attempts += 1;
      if (attempts === 1) throw new BackendUnavailableError("No daemon", { remedy: "Start it." });
      yield* printing([]);
    });
    const first = runs.submit(someBlocks, { id: "one" });
    await expect(first.result()).rejects.toThrow("No daemon");
    // Later callers learn why, and can submit it again.
    expect([runs.run("one"), first.state]).toEqual([first, "failed"]);
    await expect(runs.run("one").result()).rejects.toThrow("No daemon");
    expect(await runs.submit(someBlocks, { id: "one" }).result()).toBe(emptyResult);
    expect(runs.runs()).toHaveLength(1);
  });

  it("are forgotten in the order in which they end", async () => {
    let go: () => void = () => {};
    const gone = new Promise<void>((resolve) => {
      go = resolve;
    });
    let submitted = 0;
    const runs = runsOf(async function* () {
      submitted += 1;
      if (submitted === 1) await gone;
      yield* printing([]);
    });
    const long = runs.submit(someBlocks, { id: "long" });
    for (let number = 0; number < 105; number += 1) await runs.submit(someBlocks).result();
    go();
    await long.result();
    await new Promise(setImmediate);
    expect(runs.run("long")).toBe(long);
    expect(runs.runs()).toHaveLength(100);
  });

  it("count the rich outputs of their results", async () => {
    const data = { "image/png": new Uint8Array(60_000_000) };
    const result = { ...emptyResult, displays: [{ data, files: [] }] };
    const runs = runsOf(async function* () {
      yield { type: "result", result };
    });
    for (let number = 0; number < 6; number += 1) await runs.submit(someBlocks).result();
    await new Promise(setImmediate);
    expect(runs.runs()).toHaveLength(4);
  });

  it("differ by their input and their variables", async () => {
    const runs = runsOf(() => printing([]));
    const options = { id: "one", stdin: "1", env: { A: "1", B: "2" } };
    const first = runs.submit(someBlocks, options);
    expect(runs.submit(someBlocks, { ...options, env: { B: "2", A: "1" } })).toBe(first);
    for (const other of [{ stdin: "2" }, { env: { A: "2" } }]) {
      expect(() => runs.submit(someBlocks, { ...options, ...other })).toThrow(InvalidInputError);
    }
    await first.result();
  });

  it("leave nothing behind if the executor refuses them at once", () => {
    const runs = runsOf(() => {
      throw new InvalidInputError("No room", { remedy: "Wait." });
    });
    expect(() => runs.submit(someBlocks)).toThrow("No room");
    expect(runs.runs()).toEqual([]);
  });
});

describe("runs that an earlier program has submitted", () => {
  const identity = { id: "left", uuid: "its uuid", content: "its content" };

  it("are read when somebody asks, and keep the numbers of their events", async () => {
    let reads = 0;
    const states: string[] = [];
    const runs = runsOf(() => printing(["new"]));
    const numbered = async function* (): AsyncGenerator<RunEvent> {
      reads += 1;
      yield { seq: 1, event: printed("one") };
      yield { seq: 4, event: { type: "gap", events: 3 } };
      yield { seq: 5, event: printed("two") };
      states.push(runs.run("left").state);
      yield { seq: 8, event: { type: "result", result: emptyResult } };
    };
    runs.adopt([{ ...identity, state: "finished", lastSeq: 8, read: numbered }], new Map([["old", "content"]]));
    const run = runs.run("left");
    expect([run.state, run.lastSeq, run.uuid, reads]).toEqual(["finished", 8, "its uuid", 0]);
    await run.cancel();
    expect((await collect(run)).map(({ seq }) => seq)).toEqual([1, 4, 5, 8]);
    expect((await collect(run, 4)).map(({ seq }) => seq)).toEqual([5, 8]);
    expect((await collect(run, 5)).map(({ seq }) => seq)).toEqual([8]);
    expect([await run.result(), reads]).toEqual([emptyResult, 1]);
    // It does not run again while it is read.
    expect(states).toEqual(["finished"]);
    expect(() => runs.run("old")).toThrow(RunNotFoundError);
    expect(() => runs.submit(someBlocks, { id: "old" })).toThrow(InvalidInputError);
    expect(() => runs.submit(someBlocks, { id: "left" })).toThrow(InvalidInputError);
  });

  it("go on at once if they have not ended, and are not there twice", async () => {
    const runs = runsOf(() => printing(["new"]));
    const read = (signal: AbortSignal): AsyncIterable<RunEvent> => untilCancelled(signal);
    const left = { ...identity, state: "running" as const, lastSeq: 1, read };
    runs.adopt([left], new Map());
    runs.adopt([left], new Map());
    const [run, ...others] = runs.runs();
    expect(others).toEqual([]);
    await run?.cancel();
    expect(run?.state).toBe("failed");
    await expect(run?.result()).rejects.toMatchObject({ name: "AbortError" });
  });
});

async function* untilCancelled(signal: AbortSignal): AsyncGenerator<RunEvent> {
  yield { seq: 1, event: printed("one") };
  await untilAborted(new Promise(() => {}), signal);
}
