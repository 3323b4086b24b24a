import { EventEmitter, once } from "node:events";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { BackendUnavailableError, InvalidInputError, QuotaExceededError } from "../../src/index.ts";
import { eventStreamResponse, readEventStream } from "../../src/web/index.ts";
import { serve } from "../support/serve.ts";

async function read(url: string): Promise<object[]> {
  const events: object[] = [];
  for await (const event of readEventStream(await fetch(url))) events.push(event);
  return events;
}

/** An endless stream of events, and whether its consumer has left it. */
function endless(text: string) {
  const state = { sent: 0, left: false };
  const stream = async function* (): AsyncGenerator<object> {
    try {
      for (;;) {
        state.sent += 1;
        yield { type: "stdout", index: 0, text };
        await sleep(1);
      }
    } finally {
      state.left = true;
    }
  };
  return { state, stream };
}

describe("eventStreamResponse", () => {
  it("sends each item as one event, and ends with the stream", async () => {
    const items = [
      { type: "stdout", index: 0, text: "two\nlines\u2028\r\n" },
      { type: "display", index: 0, display: { data: { "image/png": new Uint8Array([1, 2]) }, files: ["/host/a.png"] } },
    ];
    const url = await serve(() => eventStreamResponse(Readable.from(items), { headers: { "x-run": "7" } }));
    const response = await fetch(url);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
      "x-run": "7",
    });
    const text = await response.text();
    expect(text).not.toContain("/host");
    expect(text.split("\n\n").length).toBe(4);
    expect(await read(url)).toEqual([
      items[0],
      { type: "display", index: 0, display: { data: { "image/png": new Uint8Array([1, 2]) }, files: [] } },
    ]);
  });

  it("ends with the stream's error: its public parts for the client, all of it for onError", async () => {
    const error = new QuotaExceededError("Too many runs", { remedy: "Wait.", cause: new Error("secret") });
    const onError = vi.fn<(reason: unknown) => void>();
    const fails = async function* (): AsyncGenerator<object> {
      yield { type: "stdout", index: 0, text: "hi" };
      throw error;
    };
    const url = await serve(() => eventStreamResponse(fails(), { onError }));
    expect(await (await fetch(url)).text()).not.toContain("secret");
    const events = readEventStream(await fetch(url));
    expect((await events.next()).value).toMatchObject({ text: "hi" });
    await expect(events.next()).rejects.toThrow("Too many runs. Wait.");
    expect(onError).toHaveBeenCalledWith(error);
  });

  it("closes a stream that yields something other than JSON", async () => {
    const { state, stream } = endless("tick\n");
    const odd = async function* (): AsyncGenerator<object> {
      yield { count: 7n };
      yield* stream();
    };
    const [events, closed] = [odd(), vi.fn<() => void>()];
    const leaving = {
      [Symbol.asyncIterator]: () => ({
        next: () => events.next(),
        return: async () => (closed(), { done: true as const, value: undefined }),
      }),
    };
    const text = await eventStreamResponse(leaving).text();
    expect(text).toContain('"code":"internal"');
    expect(closed).toHaveBeenCalledOnce();
    expect(state.left).toBe(false);
  });

  it("closes the stream when the client leaves", async () => {
    const { state, stream } = endless("tick\n");
    const url = await serve(() => eventStreamResponse(stream()));
    for await (const event of readEventStream(await fetch(url))) {
      expect(event).toMatchObject({ text: "tick\n" });
      break;
    }
    await vi.waitFor(() => expect(state.left).toBe(true), { timeout: 60_000 });
  });

  it("aborts the signal of a waiting stream function when the client leaves", async () => {
    let signal: AbortSignal | undefined;
    const waits = async function* (given: AbortSignal): AsyncGenerator<object> {
      signal = given;
      yield { type: "stdout", index: 0, text: "ready" };
      await once(given, "abort");
    };
    const url = await serve(() => eventStreamResponse(waits));
    for await (const _ of readEventStream(await fetch(url))) break;
    await vi.waitFor(() => expect(signal?.aborted).toBe(true), { timeout: 60_000 });
  });

  it("pauses the stream for a client that does not read", async () => {
    const { state, stream } = endless("x".repeat(100_000));
    const url = await serve(() => eventStreamResponse(stream()));
    const response = await fetch(url);
    let sent = -1;
    // The buffers of both sides fill up first.
    while (sent !== state.sent) {
      sent = state.sent;
      await sleep(300);
    }
    expect(sent).toBeLessThan(200);
    const reader = response.body?.getReader();
    while (state.sent === sent) await reader?.read();
    await reader?.cancel();
    await vi.waitFor(() => expect(state.left).toBe(true), { timeout: 60_000 });
  });

  it("sends comments while the stream is silent", async () => {
    const quiet = async function* (signal: AbortSignal): AsyncGenerator<object> {
      await once(signal, "abort");
      yield {};
    };
    const url = await serve(() => eventStreamResponse(quiet, { heartbeatMs: 5 }));
    const reader = (await fetch(url)).body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (text.length < 9) text += (await reader?.read())?.value ?? "";
    expect(text).toMatch(/^(:\n\n)+$/);
    await reader?.cancel();
  });

  it("ends with an error when its signal is aborted", async () => {
    const stopping = new AbortController();
    const { state, stream } = endless("tick\n");
    const url = await serve(() => eventStreamResponse(stream(), { signal: stopping.signal }));
    const seen: object[] = [];
    const reading = async (): Promise<void> => {
      for await (const event of readEventStream(await fetch(url))) {
        seen.push(event);
        stopping.abort();
      }
    };
    await expect(reading()).rejects.toThrow("The run was aborted.");
    expect(seen.length).toBeGreaterThan(0);
    // The reader may learn of the end first.
    await expect.poll(() => state.left).toBe(true);
  });

  it("rejects an unknown option", () => {
    const options: object = { heartbeat: 5 };
    expect(() => eventStreamResponse(Readable.from([]), options)).toThrow('Did you mean "heartbeatMs"');
  });
});

describe("readEventStream", () => {
  const eventStream = (body: string | ReadableStream<Uint8Array>): Response =>
    new Response(body, { headers: { "content-type": "text/event-stream" } });
  const end = "event: end\ndata: {}\n\n";

  it("throws for a stream that ended cleanly before its end was sent", async () => {
    const { stream } = endless("tick\n");
    const part = await readEventStream(eventStreamResponse(stream())).next();
    const url = await serve(() => eventStream(`data: ${JSON.stringify(part.value)}\n\n`));
    const events = readEventStream(await fetch(url));
    expect((await events.next()).value).toMatchObject({ text: "tick\n" });
    await expect(events.next()).rejects.toThrow(BackendUnavailableError);
    await expect(read(await serve(() => eventStream("")))).rejects.toThrow("ended early");
    await expect(read(await serve(() => eventStream('data: {"type":"x"}\n\nevent: end\ndata: {}')))).rejects.toThrow(
      "ended early",
    );
  });

  it("throws the same for a connection that is reset", async () => {
    const tick = new TextEncoder().encode('data: {"type":"tick"}\n\n');
    const arrived = new EventEmitter();
    const breaks = async function* (): AsyncGenerator<Uint8Array> {
      const heard = once(arrived, "tick");
      yield tick;
      await heard;
      throw new Error("gone");
    };
    const url = await serve(() => eventStream(ReadableStream.from(breaks())));
    const events = readEventStream(await fetch(url));
    expect((await events.next()).value).toEqual({ type: "tick" });
    arrived.emit("tick");
    await expect(events.next()).rejects.toThrow(BackendUnavailableError);
  });

  it("throws the reason of an aborted request", async () => {
    const { stream } = endless("tick\n");
    const url = await serve(() => eventStreamResponse(stream()));
    const leaving = new AbortController();
    const reason = new InvalidInputError("Enough", { remedy: "Go home." });
    const reading = async (): Promise<void> => {
      for await (const _ of readEventStream(await fetch(url, { signal: leaving.signal }))) leaving.abort(reason);
    };
    await expect(reading()).rejects.toBe(reason);
  });

  it.each([
    ["several data lines", `data: {"type":\ndata: "x"}\n\n${end}`],
    ["data without a space", `data:{"type":"x"}\n\n${end}`],
    ["carriage returns alone", `data: {"type":"x"}\r\r${end.replaceAll("\n", "\r")}`],
    ["both", `data: {"type":"x"}\r\n\r\n${end.replaceAll("\n", "\r\n")}`],
    ["ids, retries, comments and a byte order mark", `\ufeff: hi\nretry: 1\nid: 7\ndata: {"type":"x"}\n\n${end}`],
  ])("reads %s", async (_, text) => {
    expect(await read(await serve(() => eventStream(text)))).toEqual([{ type: "x" }]);
    const bytes = Array.from(new TextEncoder().encode(text), (byte) => new Uint8Array([byte]));
    expect(await read(await serve(() => eventStream(ReadableStream.from(bytes))))).toEqual([{ type: "x" }]);
  });

  it("reads an event at once whose last line ends in a carriage return", async () => {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode('data: {"type":"x"}\r\r')),
    });
    const events = readEventStream(eventStream(body));
    expect((await events.next()).value).toEqual({ type: "x" });
    await events.return();
  });

  it("ignores lines that are no part of an event, but not without end", async () => {
    const event = `unknown: 1\nretry: soon\ndata: {"type":"x"}\n\n`;
    const response = (text: string): Response =>
      new Response(text, { headers: { "content-type": "text/event-stream" } });
    const seen: object[] = [];
    const last = `event: end\ndata: {"type":"end"}\n\n`;
    for await (const each of readEventStream(response(event.repeat(8000) + last))) seen.push(each);
    expect(seen).toHaveLength(8000);
    const reading = async (): Promise<void> => {
      for await (const _ of readEventStream(response("a\n".repeat(20_000))));
    };
    await expect(reading()).rejects.toThrow(/more than 10000 lines that are not part of an event/);
  });

  it("reads megabytes of short lines after a carriage return in time that grows with their length alone", async () => {
    const lines = new TextEncoder().encode(`\r${":\n".repeat(2_000_000)}data: {"type":"x"}\n\n${end}`);
    const events = readEventStream(eventStream(ReadableStream.from([lines])));
    expect((await events.next()).value).toEqual({ type: "x" });
    expect((await events.next()).done).toBe(true);
  });

  it("says what it cannot read", async () => {
    await expect(read(await serve(() => eventStream(`data: tick\n\n${end}`)))).rejects.toThrow(
      'an event that is not JSON ("tick")',
    );
  });

  it("throws the error that was sent instead of a stream", async () => {
    const error = JSON.stringify({
      type: "error",
      code: "invalid_input",
      name: "x",
      message: "No code. Send some.",
      remedy: "Send some.",
    });
    const url = await serve(
      () => new Response(error, { status: 400, headers: { "content-type": "application/json" } }),
    );
    await expect(read(url)).rejects.toThrow(InvalidInputError);
    const proxy = await serve(() => new Response("Bad gateway", { status: 502 }));
    await expect(read(proxy)).rejects.toThrow("The server answered with status 502: Bad gateway");
  });
});
