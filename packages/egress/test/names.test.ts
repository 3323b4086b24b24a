import { createSocket } from "node:dgram";
import dns from "node:dns/promises";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import os from "node:os";
import { playHost } from "@fenced/test-support/loopback-hosts";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { EgressProxy } from "../src/index.ts";
import { everything, exchange, get, startProxy } from "./support/places.ts";

const refused = /^HTTP\/1\.1 403 (.*)\r\n/;

/** What the proxy answers for a host, over plain HTTP and over CONNECT, in one word each. */
async function ask(proxy: Awaited<ReturnType<typeof startProxy>>, host: string, port: number): Promise<string[]> {
  const plain = await exchange(proxy, get(`http://${host}:${port}/`));
  const tunnel = await exchange(
    proxy,
    `CONNECT ${host}:${port} HTTP/1.1\r\nHost: ${host}:${port}\r\n\r\nGET / HTTP/1.1\r\nHost: inner\r\nConnection: close\r\n\r\n`,
  );
  return [plain, tunnel].map((answer) =>
    answer.includes("host of") ? "reached" : answer.startsWith("HTTP/1.1 403 ") ? "refused" : answer.slice(0, 12),
  );
}

describe("names", () => {
  test("a listed name is reached in every equivalent spelling", async () => {
    const port = await playHost();
    const proxy = await startProxy({ allow: ["Api.Example.com.", "bücher.example", "127.0.0.1"] });
    const spellings = [
      "api.example.com",
      "API.EXAMPLE.COM",
      "api.example.com.",
      "xn--bcher-kva.example",
      "XN--BCHER-KVA.example.",
    ];
    for (const host of spellings) {
      expect([host, ...(await ask(proxy, host, port))]).toEqual([host, "reached", "reached"]);
    }
    expect(new Set(proxy.lookups)).toEqual(new Set(["api.example.com", "xn--bcher-kva.example"]));
  });

  test("a list from a function may change between connections, and fails closed", async () => {
    const port = await playHost();
    let allow = (): readonly string[] => ["one.example", "127.0.0.1"];
    const proxy = await startProxy({ allow: () => allow() });
    const askBoth = async () => [await ask(proxy, "one.example", port), await ask(proxy, "two.example", port)];
    expect(await askBoth()).toEqual([
      ["reached", "reached"],
      ["refused", "refused"],
    ]);
    allow = () => ["two.example", "127.0.0.1", "https://no host/"];
    expect(await askBoth()).toEqual([
      ["refused", "refused"],
      ["reached", "reached"],
    ]);
    allow = () => {
      throw new Error("no list");
    };
    expect((await askBoth()).flat()).toEqual(Array.from({ length: 4 }, () => "refused"));
  });

  test("unlisted hosts are refused with a reason, and not looked up", async () => {
    const port = await playHost();
    const proxy = await startProxy({ allow: ["api.example.com", "127.0.0.1"] });
    const hosts = [
      "example.com",
      "evil.com",
      "xapi.example.com",
      "a.api.example.com",
      "api.example.com.evil.com",
      "api.example.comm",
      "localhost",
    ];
    for (const host of hosts) expect([host, ...(await ask(proxy, host, port))]).toEqual([host, "refused", "refused"]);
    expect(proxy.lookups).toEqual([]);
    const answer = await exchange(proxy, "CONNECT api.foo.com:443 HTTP/1.1\r\nHost: api.foo.com:443\r\n\r\n");
    expect(refused.exec(answer)?.[1]).toBe("api.foo.com is not in this executor's network policy");
    expect(answer).toMatch(/\r\n\r\napi\.foo\.com is not in this executor's network policy\n$/);
    expect(proxy.decisions.at(-1)).toEqual({
      allowed: false,
      protocol: "connect",
      host: "api.foo.com",
      port: 443,
      reason: "api.foo.com is not in this executor's network policy",
    });
  });

  test("a wildcard matches all subdomains, but neither the domain itself nor other names", async () => {
    const port = await playHost();
    const proxy = await startProxy({ allow: ["*.example.com", "127.0.0.1"] });
    for (const host of ["a.example.com", "a.b.example.com", "A.EXAMPLE.com."]) {
      expect([host, ...(await ask(proxy, host, port))]).toEqual([host, "reached", "reached"]);
    }
    for (const host of ["example.com", "aexample.com", "example.com.evil.org", "a.example.org"]) {
      expect([host, ...(await ask(proxy, host, port))]).toEqual([host, "refused", "refused"]);
    }
  });

  test("the star does not allow private addresses", async () => {
    const port = await playHost();
    const proxy = await startProxy({ allow: ["*"], resolve: () => Promise.resolve(["127.0.0.1"]) });
    expect(await ask(proxy, "anything.example", port)).toEqual(["refused", "refused"]);
    expect(await ask(proxy, "127.0.0.1", port)).toEqual(["refused", "refused"]);
    expect(proxy.lookups).toEqual(["anything.example", "anything.example"]);
    expect(proxy.decisions[0]?.reason).toBe(
      "anything.example is not in this executor's network policy: it resolves to a loopback address",
    );
  });

  test("an unlisted port is refused, and named", async () => {
    const port = await playHost();
    const other = await playHost();
    const proxy = await startProxy({ allow: [`api.example.com:${port}`, `*.example.org:${port}`, "127.0.0.1"] });
    expect(await ask(proxy, "api.example.com", port)).toEqual(["reached", "reached"]);
    expect(await ask(proxy, "api.example.com", other)).toEqual(["refused", "refused"]);
    expect(proxy.decisions.at(-1)?.reason).toBe(
      `port ${other} of api.example.com is not in this executor's network policy`,
    );
    expect(await ask(proxy, "a.example.org", port)).toEqual(["reached", "reached"]);
    expect(await ask(proxy, "a.example.org", other)).toEqual(["refused", "refused"]);
  });

  test("an invalid host name is refused", async () => {
    const proxy = await startProxy({ allow: ["*", "127.0.0.1"] });
    for (const host of ["a..b", "[fe80::1%25lo]", "[fe80::1%lo]", "[::1", "1.2.3.4.5", `${"a".repeat(64)}.com`]) {
      const answers = await ask(proxy, host, 80);
      for (const answer of answers) expect(`${answer} ${host}`).toMatch(/^HTTP\/1\.1 400|^refused /);
    }
    expect(proxy.lookups).toEqual([]);
  });
});

describe("addresses", () => {
  const loopback = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "0x7f.0.0.1",
    "0x7f000001",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "127.0.0.1.",
    "１２７.０.０.１",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:FFFF:7F00:0001]",
  ];

  test("no spelling of a loopback address gets through", async () => {
    const port = await playHost();
    const proxy = await startProxy({ allow: ["*.example.com", "*"] });
    for (const host of [...loopback, "[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "0", "0.0.0.0", "[::127.0.0.1]"]) {
      const wide = Buffer.from(`CONNECT ${host}:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
      expect(await exchange(proxy, wide)).toMatch(/^HTTP\/1\.1 40[03] /);
    }
    expect(proxy.decisions.filter(({ allowed }) => allowed)).toEqual([]);
    expect(proxy.lookups).toEqual([]);
  });

  test("a listed address is reached in every spelling", async () => {
    const port = await playHost();
    const proxy = await startProxy({ allow: ["0x7f.1"] });
    for (const host of loopback.filter((each) => !each.includes("１"))) {
      expect([host, ...(await ask(proxy, host, port))]).toEqual([host, "reached", "reached"]);
    }
    expect(new Set(proxy.decisions.map(({ host, address }) => `${host} ${address ?? ""}`))).toEqual(
      new Set(["127.0.0.1 127.0.0.1"]),
    );
    expect(await ask(proxy, "127.0.0.2", port)).toEqual(["refused", "refused"]);
  });

  test("an address may be listed for one port", async () => {
    const port = await playHost();
    const other = await playHost();
    const proxy = await startProxy({ allow: ["intranet.example", `127.0.0.1:${port}`] });
    expect(await ask(proxy, "intranet.example", port)).toEqual(["reached", "reached"]);
    expect(await ask(proxy, "intranet.example", other)).toEqual(["refused", "refused"]);
  });

  const special: Record<string, string[]> = {
    "a loopback address": ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"],
    "a private address": [
      "10.0.0.1",
      "172.16.0.1",
      "172.31.255.255",
      "192.168.1.1",
      "fd12::1",
      "fec0::1",
      "::ffff:10.1.2.3",
      "64:ff9b::a00:1",
    ],
    "a link-local address": ["169.254.1.1", "fe80::1", "febf::1"],
    "a cloud metadata address": [
      "169.254.169.254",
      "100.100.100.200",
      "168.63.129.16",
      "fd00:ec2::254",
      "::ffff:a9fe:a9fe",
      "64:ff9b::a9fe:a9fe",
    ],
    "a carrier-grade NAT address": ["100.64.0.1", "100.127.255.255"],
    "a multicast address": ["224.0.0.1", "239.255.255.255", "ff02::1"],
    "a tunnel address": ["2002:7f00:1::1", "2001::1"],
    "a reserved address": [
      "0.0.0.0",
      "0.1.2.3",
      "192.0.2.1",
      "198.18.0.1",
      "240.0.0.1",
      "255.255.255.255",
      "::",
      "::7f00:1",
      "2001:db8::1",
      "64:ff9b:1::1",
      "100::1",
      "4000::1",
    ],
  };

  test.each(Object.entries(special))("a name that resolves to %s is refused", async (kind, addresses) => {
    const proxy = await startProxy({
      allow: ["*.example.com"],
      resolve: (host) => Promise.resolve([addresses[Number(host.split(".")[0])] ?? ""]),
    });
    for (const [index, address] of addresses.entries()) {
      const answer = await exchange(proxy, get(`http://${index}.example.com/`));
      expect(refused.exec(answer)?.[1]).toBe(
        `${index}.example.com is not in this executor's network policy: it resolves to ${kind}`,
      );
      // The code learns the kind of the address, but not the address.
      expect(answer).not.toContain(address);
    }
  });

  test("a name that resolves to an address of this machine itself is refused, unless that is listed", async () => {
    const address = "8.8.4.4";
    const { lo = [] } = os.networkInterfaces();
    const own = lo.slice(0, 1).map((each) => ({ ...each, address }));
    vi.spyOn(os, "networkInterfaces").mockReturnValue({ eth0: own });
    onTestFinished(() => void vi.restoreAllMocks());
    const resolve = () => Promise.resolve([address]);
    const proxy = await startProxy({ allow: ["self.example"], resolve });
    const answer = await exchange(proxy, get("http://self.example/"));
    expect(refused.exec(answer)?.[1]).toMatch(/it resolves to an address of this machine$/);
  });

  test("the code cannot reach the proxy itself, even if its address is listed", async () => {
    const proxy = await startProxy({ allow: ["127.0.0.1", "self.example"] });
    for (const host of ["127.0.0.1", "self.example", "[::ffff:127.0.0.1]"]) {
      expect([host, ...(await ask(proxy, host, proxy.port))]).toEqual([host, "refused", "refused"]);
    }
    expect(proxy.decisions.at(-1)?.reason).toMatch(/it is this proxy$/);
  });
});

describe("look-ups", () => {
  test("a name that resolves slowly does not hold up others", async () => {
    const server = createSocket("udp4");
    server.on("message", (query, { port }) => {
      // One that is not `fast` gets no answer at all.
      if (!query.includes("fast")) return;
      const end = query.indexOf(0, 12) + 5;
      const isIpv4 = query.readUInt16BE(end - 4) === 1;
      const header = Buffer.from([...query.subarray(0, 2), 0x81, 0x80, 0, 1, 0, isIpv4 ? 1 : 0, 0, 0, 0, 0]);
      const question = query.subarray(12, end);
      const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 127, 0, 0, 1]);
      server.send(Buffer.concat([header, question, ...(isIpv4 ? [record] : [])]), port);
    });
    server.bind(0, "127.0.0.1");
    await once(server, "listening");
    const before = dns.getServers();
    dns.setServers([`127.0.0.1:${server.address().port}`]);
    onTestFinished(() => {
      dns.setServers(before);
      server.close();
    });
    const port = await playHost();
    await using proxy = new EgressProxy({ allow: ["*.example", "127.0.0.1"] });
    const { port: door, url } = await proxy.listen();
    const password = Buffer.from(`fenced:${new URL(url).password}`).toString("base64");
    const send = (host: string): Socket => {
      const socket = connect(door, "127.0.0.1");
      onTestFinished(() => void socket.destroy());
      socket.on("error", () => {});
      socket.write(get(`http://${host}.example:${port}/`, `Proxy-Authorization: Basic ${password}\r\n`));
      return socket;
    };
    for (let index = 0; index < 20; index += 1) send(`slow${index}`);
    expect(await everything(send("fast"))).toContain("host of fast.example");
  });

  test("a name is looked up once per connection, and the checked address is dialed", async () => {
    const port = await playHost();
    const answers = [["127.0.0.1"], ["169.254.169.254"], ["127.0.0.1"], ["10.0.0.1"]];
    const proxy = await startProxy({
      allow: ["turning.example", "127.0.0.1"],
      resolve: () => Promise.resolve(answers.shift() ?? []),
    });
    expect(await ask(proxy, "turning.example", port)).toEqual(["reached", "refused"]);
    expect(proxy.lookups).toHaveLength(2);
    expect(await ask(proxy, "turning.example", port)).toEqual(["reached", "refused"]);
    expect(proxy.lookups).toHaveLength(4);
  });

  test("of several addresses, only allowed ones are dialed until one answers", async () => {
    const port = await playHost();
    const proxy = await startProxy({
      allow: ["many.example", "127.0.0.1", "127.0.0.9"],
      resolve: () => Promise.resolve(["10.0.0.1", "127.0.0.9", "::1", "127.0.0.1"]),
    });
    expect(await ask(proxy, "many.example", port)).toEqual(["reached", "reached"]);
    expect(proxy.decisions[0]?.address).toBe("127.0.0.9");
  });

  test("a failed look-up is reported, without the resolver's own message", async () => {
    const proxy = await startProxy({
      allow: ["*.example.com"],
      connectTimeoutMs: 300,
      resolve: (host) => {
        if (host.startsWith("slow")) return new Promise(() => {});
        if (host.startsWith("odd")) return Promise.resolve(["no address", "", "::1%lo"]);
        return Promise.reject(Object.assign(new Error("secret of the resolver"), { code: "ENOTFOUND" }));
      },
    });
    const answers = await Promise.all(
      ["none", "slow", "odd"].map((name) => exchange(proxy, get(`http://${name}.example.com/`))),
    );
    expect(answers.map((answer) => answer.split("\r\n")[0])).toEqual([
      "HTTP/1.1 502 none.example.com could not be resolved: ENOTFOUND",
      "HTTP/1.1 502 slow.example.com could not be resolved: timed out",
      "HTTP/1.1 502 odd.example.com could not be resolved: it has no address",
    ]);
    expect(answers.join()).not.toContain("secret");
  });

  test("a host that does not listen is reported with the reason", async () => {
    const proxy = await startProxy({ allow: ["down.example", "127.0.0.1"] });
    const port = await playHost();
    const closed = port === 1 ? 2 : 1;
    const answer = await exchange(proxy, get(`http://down.example:${closed}/`));
    expect(answer).toMatch(/^HTTP\/1\.1 502 down\.example could not be reached: ECONNREFUSED\r\n/);
  });

  test("a redirect is left to the client, and its target is decided anew", async () => {
    const port = await playHost((_, response) => {
      response.writeHead(302, { location: `http://forbidden.example:${port}/` }).end();
    });
    const proxy = await startProxy({ allow: ["start.example", "127.0.0.1"] });
    const answer = await exchange(proxy, get(`http://start.example:${port}/`));
    expect(answer).toMatch(/^HTTP\/1\.1 302 /);
    const target = /location: (.*)\r\n/i.exec(answer)?.[1] ?? "";
    expect(await exchange(proxy, get(target))).toMatch(/^HTTP\/1\.1 403 forbidden\.example is not in/);
  });
});
