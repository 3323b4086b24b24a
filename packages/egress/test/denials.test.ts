import { InvalidInputError } from "@fenced/core";
import { playHost } from "@fenced/test-support/loopback-hosts";
import { describe, expect, test } from "vitest";
import { EgressProxy, type EgressProxyOptions, type NetworkDenial } from "../src/index.ts";
import { exchange, startProxy, type TestProxy } from "./support/places.ts";

const everything: NetworkDenial = { addresses: ["0.0.0.0/0", "::/0"] };

/** A host on this machine, and a proxy that allows it by any name. */
async function start(
  options: Partial<EgressProxyOptions>,
): Promise<{ proxy: TestProxy; ask: (host: string, path?: string) => Promise<string> }> {
  const port = await playHost((request, response) => void response.end(`${request.headers.host} answers`));
  const proxy = await startProxy({ allow: ["*", "127.0.0.1", "127.0.0.2"], ...options });
  const ask = (host: string): Promise<string> =>
    exchange(proxy, `GET http://${host}:${port}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  return { proxy, ask };
}

const answered = /^HTTP\/1\.1 200 /;

describe("what a policy denies", () => {
  test("is an address, whatever name leads there", async () => {
    const { proxy, ask } = await start({ deny: ["127.0.0.1"], resolve: async () => ["127.0.0.1"] });
    expect(await ask("127.0.0.1")).toMatch(/403 127\.0\.0\.1 is not in this executor's network policy: it is denied/);
    expect(await ask("a.example")).toMatch(/403 a\.example is not in .* policy: it resolves to a denied address/);
    expect(await ask("[::ffff:127.0.0.1]")).toMatch(/403 127\.0\.0\.1 is not/);
    expect(proxy.decisions.map(({ allowed }) => allowed)).toEqual([false, false, false]);
  });

  test("is a range, and the other addresses of a name stay", async () => {
    const { proxy, ask } = await start({ deny: ["127.0.0.2/31"], resolve: async () => ["127.0.0.2", "127.0.0.1"] });
    expect(await ask("a.example")).toMatch(answered);
    expect(proxy.decisions).toMatchObject([{ allowed: true, address: "127.0.0.1" }]);
  });

  test("has exceptions: names at any address, names below one, ranges", async () => {
    const { ask } = await start({ deny: [{ ...everything, except: ["a.example", "*.b.example"] }] });
    expect(await ask("a.example")).toMatch(answered);
    expect(await ask("x.b.example")).toMatch(answered);
    expect(await ask("b.example")).toMatch(/^HTTP\/1\.1 403 b\.example/);
    expect(await ask("127.0.0.1")).toMatch(/^HTTP\/1\.1 403 /);
    const ranges = await start({ deny: [{ ...everything, except: ["127.0.0.0/8"] }] });
    expect(await ranges.ask("a.example")).toMatch(answered);
    expect(await ranges.ask("127.0.0.1")).toMatch(answered);
    const names = await start({ deny: [{ ...everything, except: ["*"] }] });
    expect(await names.ask("a.example")).toMatch(answered);
    expect(await names.ask("127.0.0.1")).toMatch(/^HTTP\/1\.1 403 /);
  });

  test("stays denied if only another entry has an exception, and never allows what is not allowed", async () => {
    const except = ["a.example", "127.0.0.1"];
    const { ask } = await start({ deny: [{ ...everything, except }, "127.0.0.1"] });
    expect(await ask("a.example")).toMatch(/403 a\.example .* denied address/);
    const unlisted = await start({ allow: ["b.example"], deny: [{ ...everything, except }] });
    expect(await unlisted.ask("a.example")).toMatch(/^HTTP\/1\.1 403 a\.example/);
    // The name is allowed, the address is not.
    const special = await start({ allow: ["a.example"], deny: [{ ...everything, except }] });
    expect(await special.ask("a.example")).toMatch(/403 a\.example .* a loopback address/);
  });

  test("needs no look-up, and asks nobody, if everything is denied", async () => {
    const asked: string[] = [];
    const { proxy, ask } = await start({
      allow: [],
      deny: [everything],
      onUnknownHost: ({ host }) => asked.push(host) > 0,
    });
    expect(await ask("a.example")).toMatch(/^HTTP\/1\.1 403 a\.example/);
    expect([proxy.lookups, asked]).toEqual([[], []]);
  });

  test("can change: a function is asked for each connection", async () => {
    let denied: (string | NetworkDenial)[] = [];
    const { ask } = await start({ deny: () => denied });
    expect(await ask("a.example")).toMatch(answered);
    // The same list, changed in place.
    denied.push("127.0.0.1");
    expect(await ask("a.example")).toMatch(/^HTTP\/1\.1 403 /);
    denied = [{ ...everything, except: ["a.example"] }];
    expect(await ask("a.example")).toMatch(answered);
    denied = [];
    expect(await ask("127.0.0.1")).toMatch(answered);
  });

  test.each([
    [
      "throws",
      () => {
        throw new Error("no");
      },
    ],
    ["returns no list", () => undefined],
    ["returns what is no address", () => ["example.com"]],
    ["returns an unknown field", () => [{ addresses: [], exept: [] }]],
    ["returns a promise", async () => []],
  ])("is everything if the function %s", async (_, deny) => {
    const options: EgressProxyOptions = { allow: ["*", "127.0.0.1"] };
    Reflect.set(options, "deny", deny);
    const { ask } = await start(options);
    expect(await ask("a.example")).toMatch(/403 this executor's network policy could not be evaluated/);
  });

  test.each([
    [["example.com"], /deny\[0\].*must list addresses and ranges/],
    [["192.0.2.0/33"], /must list addresses and ranges/],
    [[{ addresses: ["0.0.0.0/0"], except: ["https://a.example/"] }], /except.*must list hosts/],
    [[{ addresses: ["0.0.0.0/0"], except: ["192.0.2.7:443"] }], /except.*must list hosts/],
    [[{ addresses: ["0.0.0.0/0"], exept: [] }], /exept.*unknown/],
    [[{}], /must be a list of addresses/],
  ])("is checked: %j", (deny, message) => {
    const options: EgressProxyOptions = { allow: [] };
    Reflect.set(options, "deny", deny);
    expect(() => new EgressProxy(options)).toThrow(InvalidInputError);
    expect(() => new EgressProxy(options)).toThrow(message);
  });
});
