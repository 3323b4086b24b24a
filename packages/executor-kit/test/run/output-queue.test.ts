import { PassThrough, Readable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { OutputQueue } from "@fenced/executor-kit";
import { describe, expect, it } from "vitest";

async function all<T>(queue: OutputQueue<T>): Promise<{ text: string; outcome: T }> {
  let text = "";
  for (const events = queue.events(); ;) {
    const { value, done } = await events.next();
    if (done === true) return { text, outcome: value };
    if ("data" in value) text += String(value.data);
  }
}

describe("OutputQueue", () => {
  it("yields output in order, then the outcome, and drops what comes later", async () => {
    const queue = new OutputQueue<number>();
    const stream = new PassThrough();
    queue.follow("stdout", stream, (bytes) => [bytes, Buffer.from("|")]);
    stream.write("one");
    await turn();
    queue.push("stderr", Buffer.from("two"));
    queue.end(7);
    queue.end(8);
    queue.fail(new Error("too late"));
    queue.push("stdout", Buffer.from("three"));
    expect(await all(queue)).toEqual({ text: "one|two", outcome: 7 });
  });

  it("throws a failure after the output before it", async () => {
    const queue = new OutputQueue<number>();
    queue.push("stdout", Buffer.from("one"));
    queue.fail(new Error("broke"));
    const events = queue.events();
    expect(await events.next()).toMatchObject({ done: false });
    await expect(events.next()).rejects.toThrow("broke");
  });

  it("pauses a stream that nobody reads, and resumes it when somebody does", async () => {
    const chunk = Buffer.alloc(65_536);
    let given = 0;
    const stream = new Readable({
      highWaterMark: 1,
      read() {
        this.push(given++ < 100 ? chunk : null);
      },
    });
    const queue = new OutputQueue<string>();
    queue.follow("stdout", stream);
    stream.on("end", () => queue.end("all"));
    while (!stream.isPaused()) await turn();
    for (let turns = 0; turns < 50; turns += 1) await turn();
    expect(given).toBeLessThan(10);
    const { text, outcome } = await all(queue);
    expect([text.length, outcome]).toEqual([100 * chunk.length, "all"]);
  });

  it("drains what was written, without waiting for the stream to end", async () => {
    const queue = new OutputQueue<string>();
    const stream = new PassThrough();
    queue.follow("stdout", stream);
    stream.write("here");
    await queue.drained();
    queue.end("over");
    expect(await all(queue)).toEqual({ text: "here", outcome: "over" });
  });
});
