import { setTimeout as sleep } from "node:timers/promises";
import type { UnknownHost } from "@fenced/core";
import { playHost } from "@fenced/test-support/loopback-hosts";
import { describe, expect, test } from "vitest";
import { exchange, get, startProxy, type TestProxy } from "./support/places.ts";

const listed = ["known.example", "127.0.0.1"];

function ask(proxy: TestProxy, host: string, port: number): Promise<string> {
  return exchange(proxy, get(`http://${host}:${port}/`));
}

/** Opens a tunnel; returns the answer to a request in it, or the refusal. */
function askInside(proxy: TestProxy, host: string, port: number): Promise<string> {
  const inner = "GET / HTTP/1.1\r\nHost: inner\r\nConnection: close\r\n\r\n";
  return exchange(proxy, `CONNECT ${host}:${port} HTTP/1.1\r\nHost: x\r\n\r\n${inner}`);
}

/** A function that keeps its questions until the test answers them. */
function questions() {
  const asked: (UnknownHost & {
    readonly signal: AbortSignal;
    readonly answer: (isAllowed: boolean) => void;
    readonly fail: (error: Error) => void;
  })[] = [];
  const onUnknownHost = (host: UnknownHost, signal: AbortSignal): Promise<boolean> =>
    new Promise((answer, fail) => {
      asked.push({ ...host, signal, answer, fail });
    });
  return { asked, onUnknownHost };
}

describe("a host that is not listed", () => {
  test("is asked about once, while all its connections wait, and the answer counts from then on", async () => {
    const port = await playHost();
    const { asked, onUnknownHost } = questions();
    const proxy = await startProxy({ allow: listed, onUnknownHost });
    expect(await ask(proxy, "known.example", port)).toContain("host of");
    const waiting = [ask(proxy, "new.example", port), askInside(proxy, "NEW.example.", port)];
    await expect.poll(() => proxy.proxy.connections).toBe(2);
    await expect.poll(() => asked.map(({ host }) => host)).toEqual(["new.example"]);
    expect(proxy.lookups).toEqual(["known.example"]);
    asked[0]?.answer(true);
    for (const answer of await Promise.all(waiting)) expect(answer).toContain("host of");
    expect(await ask(proxy, "new.example", port)).toContain("host of");
    expect(asked).toHaveLength(1);
    const other = ask(proxy, "new.example", 1);
    await expect.poll(() => asked.map((each) => each.port)).toEqual([port, 1]);
    asked[1]?.answer(false);
    expect(await other).toMatch(/^HTTP\/1\.1 403 port 1 of new\.example .* was asked about, and is not allowed/);
    expect(await ask(proxy, "new.example", 1)).toContain("is not allowed");
    expect(asked).toHaveLength(2);
    expect(proxy.decisions.map(({ allowed, port: to }) => [allowed, to])).toEqual([
      ...Array.from({ length: 4 }, () => [true, port]),
      ...Array.from({ length: 2 }, () => [false, 1]),
    ]);
  });

  test("is refused for the one connection if nobody can be asked", async () => {
    const port = await playHost();
    const { asked, onUnknownHost } = questions();
    const proxy = await startProxy({ allow: listed, onUnknownHost });
    const first = ask(proxy, "new.example", port);
    await expect.poll(() => asked).toHaveLength(1);
    asked[0]?.fail(new Error("secret: nobody is there"));
    const answer = await first;
    expect(answer).toContain("could not be asked about");
    expect(answer).not.toContain("secret");
    const second = ask(proxy, "new.example", port);
    await expect.poll(() => asked).toHaveLength(2);
    asked[1]?.answer(true);
    expect(await second).toContain("host of");
  });

  test("is not waited for when its connections have left, but a late answer counts", async () => {
    const port = await playHost();
    const { asked, onUnknownHost } = questions();
    const proxy = await startProxy({ allow: listed, onUnknownHost });
    const client = await proxy.connect();
    client.write(get(`http://new.example:${port}/`));
    await expect.poll(() => asked).toHaveLength(1);
    expect(asked[0]?.signal.aborted).toBe(false);
    client.resetAndDestroy();
    await expect.poll(() => asked[0]?.signal.aborted).toBe(true);
    asked[0]?.answer(true);
    expect(await ask(proxy, "new.example", port)).toContain("host of");
    expect(asked).toHaveLength(1);
  });

  test("is asked about again for a connection that came while an abandoned question was being withdrawn", async () => {
    const port = await playHost();
    const { asked, onUnknownHost } = questions();
    const proxy = await startProxy({ allow: listed, onUnknownHost });
    const client = await proxy.connect();
    client.write(get(`http://new.example:${port}/`));
    await expect.poll(() => asked).toHaveLength(1);
    client.resetAndDestroy();
    await expect.poll(() => asked[0]?.signal.aborted).toBe(true);
    const next = ask(proxy, "new.example", port);
    await expect.poll(() => proxy.proxy.connections).toBe(1);
    // The connection reaches the gatekeeper in a later turn.
    await sleep(100);
    asked[0]?.fail(new Error("withdrawn"));
    await expect.poll(() => asked).toHaveLength(2);
    asked[1]?.answer(true);
    expect(await next).toContain("host of");
  });

  test("is refused while there is no answer for long", async () => {
    const port = await playHost();
    const { asked, onUnknownHost } = questions();
    const proxy = await startProxy({ allow: listed, onUnknownHost, idleTimeoutMs: 3000 });
    expect(await ask(proxy, "new.example", port)).toContain("without an answer so far");
    asked[0]?.answer(true);
    expect(await ask(proxy, "new.example", port)).toContain("host of");
    expect(asked.map(({ signal }) => signal.aborted)).toEqual([true]);
  });

  test("is not asked about if it is an address of this machine or its network, or while 16 others wait", async () => {
    const port = await playHost();
    const { asked, onUnknownHost } = questions();
    const proxy = await startProxy({ allow: ["127.0.0.1"], onUnknownHost });
    for (const host of ["127.0.0.2", "10.0.0.1", "169.254.169.254", "[::1]", "no_name\u00e9"]) {
      expect(await ask(proxy, host, port)).toMatch(/^HTTP\/1\.1 40[03] /);
    }
    expect(asked).toEqual([]);
    const waiting = Array.from({ length: 17 }, (_, index) => ask(proxy, `h${index}.example`, port));
    await expect.poll(() => asked).toHaveLength(16);
    expect(await Promise.any(waiting)).toContain("too many questions");
    for (const each of asked) each.answer(false);
    for (const each of await Promise.all(waiting)) expect(each).toMatch(/^HTTP\/1\.1 403 /);
  });

  test("is refused at an address of this machine, although its name was allowed", async () => {
    const port = await playHost();
    const proxy = await startProxy({ allow: [], onUnknownHost: () => true });
    expect(await ask(proxy, "new.example", port)).toContain("it resolves to a loopback address");
  });
});
