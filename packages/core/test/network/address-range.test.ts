import { describe, expect, test } from "vitest";
import { isInRange, parseAddressRange } from "../../src/network/index.ts";

function contains(text: string, address: string): boolean | undefined {
  const range = parseAddressRange(text);
  return range && isInRange(range, address);
}

describe("a range of addresses", () => {
  test.each([
    ["192.0.2.7", "192.0.2.7", true],
    ["192.0.2.7", "192.0.2.8", false],
    ["192.0.2.77/24", "192.0.2.255", true],
    ["192.0.2.0/24", "192.0.3.0", false],
    ["0.0.0.0/0", "255.255.255.255", true],
    ["0.0.0.0/0", "2001:db8::1", false],
    ["::/0", "2001:db8::1", true],
    ["::/0", "192.0.2.7", false],
    ["2001:DB8::/32", "2001:db8:ffff::1", true],
    ["2001:db8::/32", "2001:db9::", false],
    ["2001:db8::1", "2001:db8::1", true],
    ["::ffff:192.0.2.0/120", "192.0.2.7", true],
    ["::ffff:192.0.2.7", "192.0.2.7", true],
    ["192.0.2.0/24", "64:ff9b::c000:207", true],
    ["192.0.2.0/24", "64:ff9b::c000:307", false],
    ["64:ff9b::/96", "64:ff9b::c000:207", true],
  ])("%s contains %s: %s", (text, address, expected) => {
    expect(contains(text, address)).toBe(expected);
  });

  test.each([
    "",
    "1",
    "0x7f.0.0.1",
    "010.0.0.1",
    "192.0.2",
    "192.0.2.256",
    "192.0.2.7:80",
    "192.0.2.0/33",
    "192.0.2.0/",
    "192.0.2.0/-1",
    "192.0.2.0/24/8",
    "2001:db8::/129",
    "::ffff:192.0.2.0/90",
    "[::1]",
    "fe80::1%eth0",
    "example.com",
    " 192.0.2.7",
    "１９２.0.2.7",
  ])("is not %s", (text) => {
    expect(parseAddressRange(text)).toBeUndefined();
  });
});
