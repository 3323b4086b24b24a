import { describe, expect, it, test } from "vitest";
import { packageIndexes } from "../../src/index.ts";
import { canonicalHost, isAddress, matchesHost, parseHostPattern } from "../../src/network/index.ts";
import { checkOptions, networkPolicyOption } from "../../src/options/index.ts";

describe("canonicalHost", () => {
  test.each([
    ["Example.COM", "example.com"],
    ["example.com.", "example.com"],
    ["bücher.example", "xn--bcher-kva.example"],
    ["my_host.internal", "my_host.internal"],
    ["127.1", "127.0.0.1"],
    ["0x7f.1", "127.0.0.1"],
    ["017700000001", "127.0.0.1"],
    ["2130706433", "127.0.0.1"],
    ["１２７.０.０.１", "127.0.0.1"],
    ["127。0。0。1", "127.0.0.1"],
    ["::ffff:127.0.0.1", "127.0.0.1"],
    ["[::FFFF:7F00:1]", "127.0.0.1"],
    ["0:0:0:0:0:0:0:1", "::1"],
    ["[2001:DB8::0:1]", "2001:db8::1"],
  ])("normalises %s", (text, spelling) => {
    expect(canonicalHost(text)).toBe(spelling);
  });

  test.each([
    "",
    ".",
    "a..b",
    ".example.com",
    "a b",
    "a/b",
    "user@host",
    "host:80",
    "ex%61mple.com",
    "fe80::1%eth0",
    "[fe80::1%25eth0]",
    "[example.com]",
    "[::1",
    "1.2.3.4.5",
    "256.1.1.1",
    "example.com\0",
    "example.com\r\n",
    "a".repeat(64),
    `${"a.".repeat(127)}aa`,
    "\u0000",
  ])("rejects %j", (text) => {
    expect(canonicalHost(text)).toBeUndefined();
  });

  it("isAddress distinguishes addresses from names", () => {
    expect(["127.0.0.1", "::1"].every(isAddress)).toBe(true);
    expect(["a.127.0.0.1.example", "localhost"].some(isAddress)).toBe(false);
  });
});

describe("parseHostPattern", () => {
  test.each([
    ["pypi.org", { host: "pypi.org", below: false, port: undefined }],
    ["PyPI.org.:443", { host: "pypi.org", below: false, port: 443 }],
    ["*.example.com:80", { host: "example.com", below: true, port: 80 }],
    ["*", { host: "", below: true, port: undefined }],
    ["*:443", { host: "", below: true, port: 443 }],
    ["::1", { host: "::1", below: false, port: undefined }],
    ["[::1]:8080", { host: "::1", below: false, port: 8080 }],
    ["10.0.0.5:22", { host: "10.0.0.5", below: false, port: 22 }],
  ])("parses %s", (entry, pattern) => {
    expect(parseHostPattern(entry)).toEqual(pattern);
  });

  test.each([
    "https://pypi.org",
    "pypi.org/simple",
    "a*.example.com",
    "*.10.0.0.5",
    "**",
    "",
    ":80",
    "a:0",
    "a:65536",
    "a:b",
  ])("rejects %j with a reason", (entry) => {
    expect(parseHostPattern(entry)).toHaveProperty("problem", expect.stringMatching(/^must /));
  });

  it("matches subdomains of a wildcard, but no other names or addresses", () => {
    const pattern = parseHostPattern("*.example.com");
    const matches = (host: string): boolean => "host" in pattern && matchesHost(pattern, host, 443);
    expect(["a.example.com", "a.b.example.com"].every(matches)).toBe(true);
    expect(["example.com", "aexample.com", "example.com.evil.org", "1.2.3.4"].some(matches)).toBe(false);
  });
});

describe("networkPolicyOption", () => {
  const check = (policy: unknown): unknown => checkOptions(networkPolicyOption(), policy, "policy");

  it("accepts the keywords and lists of hosts", () => {
    for (const policy of ["none", "open", { allow: [] }, { allow: [...packageIndexes, "*.example.com"] }]) {
      expect(check(policy)).toEqual(policy);
    }
  });

  test.each([
    ["bridge", /must be "none", "open" or `{ allow: \[hosts\] }`/],
    [{ allow: ["https://pypi.org"] }, /"allow\[0\]".*without `https:\/\/`/],
    [{ alow: [] }, /Did you mean "allow"/],
    [
      { allow: ["a.example"], credentials: [{ host: "b.example", header: "authorization", value: () => "secret" }] },
      /"credentials\[0\]\.host".*must be covered by `allow`/,
    ],
  ])("rejects %j", (policy, message) => {
    expect(() => check(policy)).toThrow(message);
  });
});
