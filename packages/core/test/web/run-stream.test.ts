import { EventEmitter, once } from "node:events";
import { createServer, connect, type Server, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { BackendUnavailableError, type ExecutionEvent, type SubmittedRun } from "../../src/index.ts";
import { eventStreamResponse, readEventStream } from "../../src/web/index.ts";
import { serve } from "../support/serve.ts";
import { emptyResult, printed, runsOf, someBlocks } from "../support/submit-stream.ts";

/** A run that prints one number after another, each when it is told to. */
function stepwise(count: number): { readonly run: SubmittedRun; step(): void } {
  const steps = new EventEmitter();
  const allowed = { steps: 0 };
  const run = runsOf(async function* (signal): AsyncGenerator<ExecutionEvent> {
    for (let number = 1; number <= count; number += 1) {
      while (allowed.steps < number) await once(steps, "step", { signal }).catch(() => signal?.throwIfAborted());
      yield printed(`${number};`);
    }
    yield { type: "result", result: emptyResult };
  }).submit(someBlocks, { id: "run" });
  return {
    run,
    step() {
      allowed.steps += 1;
      steps.emit("step");
    },
  };
}

/** A proxy that cuts all its connections on demand. */
async function cuttingProxy(target: string): Promise<{ readonly url: string; cut(): void; stop(): void }> {
  const { port } = new URL(target);
  const sockets = new Set<Socket>();
  const server: Server = createServer((client) => {
    const upstream = connect(Number(port), "127.0.0.1");
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.once("close", () => sockets.delete(socket));
    }
    client.pipe(upstream).pipe(client);
    client.once("close", () => upstream.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const stop = (): void => {
    server.close();
    cut();
  };
  onTestFinished(stop);
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return { url: `http://127.0.0.1:${address.port}/`, cut, stop };
}

describe("the event stream of a submitted run", () => {
  it("has ids, and goes on after the last one that a client names", async () => {
    const { run, step } = stepwise(3);
    const url = await serve((request) => eventStreamResponse(run, { request }));
    for (const _ of "123") step();
    await run.result();
    const text = await (await fetch(url)).text();
    const ids = [...text.matchAll(/^id: (\d+)-.+$/gm)].map(([, id]) => Number(id));
    expect(ids).toEqual(ids.map((_, index) => index + 1));
    const idOf = (seq: number): string => `${seq}-${run.uuid}`;
    expect(text.endsWith('event: end\ndata: {"type":"end"}\n\n')).toBe(true);
    const last = ids.at(-1) ?? 0;
    expect((await fetch(url, { headers: { "last-event-id": idOf(last) } })).status).toBe(204);
    const rest = await (await fetch(url, { headers: { "last-event-id": idOf(last - 1) } })).text();
    expect(rest).toContain(`id: ${idOf(last)}\n`);
    expect(rest).not.toContain(`id: ${idOf(last - 1)}\n`);
    for (const id of ["what?", "1", idOf(last + 1), idOf(999_999_999_999)]) {
      expect(await (await fetch(url, { headers: { "last-event-id": id } })).text()).toBe(text);
    }
  });

  it("is sent whole to a client that names an event of an earlier run at the same address", async () => {
    const [earlier, later] = [stepwise(3), stepwise(3)];
    let { run } = earlier;
    const url = await serve((request) => eventStreamResponse(run, { request }));
    for (const { step } of [earlier, later]) for (const _ of "123") step();
    await Promise.all([earlier.run.result(), later.run.result()]);
    const textOf = async (headers: Record<string, string>): Promise<string> => (await fetch(url, { headers })).text();
    const id = /^id: (2.*)$/m.exec(await textOf({}))?.[1] ?? "";
    expect(await textOf({ "last-event-id": id })).not.toContain("1;");
    run = later.run;
    expect(await textOf({ "last-event-id": id })).toContain("1;");
  });

  it("does not end the run when its client leaves", async () => {
    const { run, step } = stepwise(2);
    const url = await serve((request) => eventStreamResponse(run, { request }));
    step();
    for await (const event of readEventStream(await fetch(url))) {
      expect(event).toEqual(printed("1;"));
      break;
    }
    expect(run.state).toBe("running");
    step();
    expect(await run.result()).toBe(emptyResult);
  });

  it("is read to its end over connections that break again and again", async () => {
    const { run, step } = stepwise(5);
    const target = await serve((request) => eventStreamResponse(run, { request }));
    const proxy = await cuttingProxy(target);
    let text = "";
    step();
    for await (const event of readEventStream(await fetch(proxy.url))) {
      if ("text" in event) text += String(event.text);
      proxy.cut();
      step();
    }
    expect(text).toBe("1;2;3;4;5;");
  });

  it("is not read again if the server refuses that", async () => {
    const { run, step } = stepwise(5);
    let isOpen = true;
    const target = await serve((request) =>
      isOpen ? eventStreamResponse(run, { request }) : new Response("gone", { status: 404 }),
    );
    const proxy = await cuttingProxy(target);
    step();
    const read = async (): Promise<void> => {
      for await (const _ of readEventStream(await fetch(proxy.url))) {
        isOpen = false;
        proxy.cut();
      }
    };
    const error: unknown = await read().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(BackendUnavailableError);
    expect(String(error)).toMatch(/answered with status 404: gone/);
    expect(run.state).toBe("running");
    await run.cancel();
  });

  it("is asked for again as `reconnect` says, until its signal is aborted", async () => {
    const { run, step } = stepwise(2);
    const target = await serve((request) => eventStreamResponse(run, { request }));
    const proxy = await cuttingProxy(target);
    const asked: string[] = [];
    const leaving = new AbortController();
    step();
    const read = async (): Promise<void> => {
      const reconnect = (lastEventId: string): Promise<Response> => {
        asked.push(lastEventId);
        leaving.abort(new Error("enough"));
        return fetch(proxy.url, { headers: { "last-event-id": lastEventId } });
      };
      for await (const _ of readEventStream(await fetch(proxy.url), { reconnect, signal: leaving.signal })) proxy.cut();
    };
    await expect(read()).rejects.toThrow("enough");
    expect(asked).toEqual([`1-${run.uuid}`]);
    await run.cancel();
  });

  it("ends with the run's error", async () => {
    const { run } = stepwise(1);
    const url = await serve((request) => eventStreamResponse(run, { request }));
    const reading = (async () => {
      for await (const event of readEventStream(await fetch(url))) expect(event).toBe("nothing");
    })();
    const failure = reading.catch(String);
    await run.cancel();
    expect(await failure).toContain("The run was aborted.");
    // An EventSource that comes back after the error is told to stop, and gets the error before.
    const answer = (seq: number): Promise<Response> =>
      fetch(url, { headers: { "last-event-id": `${seq}-${run.uuid}` } });
    expect(await (await answer(0)).text()).toMatch(/^id: 1-.*\ndata: .*aborted/);
    expect((await answer(1)).status).toBe(204);
  });
});
