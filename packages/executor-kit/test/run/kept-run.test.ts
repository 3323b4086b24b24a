import type { RunEvent } from "@fenced/core";
import { describe, expect, it } from "vitest";
import { readKeptRun } from "../../src/run/kept-run.ts";

const settings = { refusal: () => "" };

/** What a reader gets of a run whose log has this record, and this note if there is one. */
async function readRun(record: string, note?: string): Promise<RunEvent[]> {
  const header = { kind: "h" as const, number: 0, content: Buffer.from(record) };
  const notes = note === undefined ? [] : [{ kind: "n" as const, number: 1, content: Buffer.from(note) }];
  const events: RunEvent[] = [];
  for await (const event of readKeptRun(ReadableStream.from([header, ...notes]), settings)) events.push(event);
  return events;
}

const record = '{"blocks":[],"maxOutputBytes":1000}';
const noteOf = (output: unknown) => ({ type: "host-result", callId: "1", name: "f", ok: true, output, durationMs: 1 });

describe("the log of a run that a place keeps", () => {
  it("is refused before it is parsed if its record has more values than a program writes", async () => {
    const forged = `{"blocks":[],"more":[${"{},".repeat(1_000_000)}{}]}`;
    await expect(readRun(forged)).rejects.toThrow("JSON of more than 1000000 values");
  });

  it("is refused before it is parsed if a note is longer than those that a place keeps", async () => {
    const forged = `{"type":"host-result","output":[${"{},".repeat(700_000)}{}]}`;
    await expect(readRun(record, forged)).rejects.toThrow("the supervisor's stream is not valid");
  });

  it.each([
    ["many names", Object.fromEntries(Array.from({ length: 150_000 }, (_, index) => [`n${index}`, 0]))],
    ["deep values", JSON.parse(`${"[".repeat(500)}${"]".repeat(500)}`) as unknown],
  ])("keeps the result of a host function with %s", async (_, output) => {
    const note = noteOf(output);
    expect(await readRun(record, JSON.stringify(note))).toEqual([{ seq: 1, event: note }]);
  });
});
