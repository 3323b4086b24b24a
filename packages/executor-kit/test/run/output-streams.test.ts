import { PassThrough, Readable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { OutputStreams } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";
import { TextSink } from "../support/text-sink.ts";

describe("OutputStreams", () => {
  it("writes what arrives, in order, and drops what comes after the end", async () => {
    const [output, sink] = [new OutputStreams(), new TextSink()];
    const [one, two] = [new PassThrough(), new PassThrough()];
    for (const stream of [one, two]) output.follow(stream, (data) => sink.write({ type: "stdout", data }));
    one.write("one ");
    await turn();
    two.write("two");
    await output.drained();
    output.end();
    one.write("three");
    await output.drained();
    expect(sink.stdout).toBe("one two");
    expect(output.arrived).toBe("one twothree".length);
  });

  it("pauses all streams while a write waits, and then resumes them", async () => {
    const chunk = Buffer.alloc(65_536);
    let given = 0;
    const stream = new Readable({
      highWaterMark: 1,
      read() {
        this.push(given++ < 100 ? chunk : null);
      },
    });
    let resume = (): void => {};
    const room = new Promise<void>((resolve) => {
      resume = resolve;
    });
    let length = 0;
    const output = new OutputStreams();
    output.follow(stream, (data) => {
      length += data.length;
      return room;
    });
    while (!output.isPaused) await turn();
    for (let turns = 0; turns < 50; turns += 1) await turn();
    expect(given).toBeLessThan(10);
    resume();
    await output.drained();
    expect(length).toBe(100 * chunk.length);
  });
});
