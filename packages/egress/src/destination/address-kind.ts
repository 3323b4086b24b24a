import { BlockList } from "node:net";
import os from "node:os";
import { canonicalHost } from "@fenced/core/network";

/** Addresses of a network without IPv4, each with an IPv4 address in its last bits (RFC 6052). */
const nat64 = "64:ff9b::";

// The registries of special-purpose addresses (RFC 6890), and the metadata services that clouds put elsewhere. The first
// kind that contains an address decides. Teredo and 6to4 addresses can contain any IPv4 address.
const special = Object.entries({
  "a cloud metadata address":
    "169.254.169.254/32 100.100.100.200/32 168.63.129.16/32 192.0.0.192/32 fd00:ec2::254/128 fd20:ce::254/128",
  "a loopback address": "127.0.0.0/8 ::1/128",
  "a private address": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10",
  "a link-local address": "169.254.0.0/16 fe80::/10",
  "a carrier-grade NAT address": "100.64.0.0/10",
  "a multicast address": "224.0.0.0/4 ff00::/8",
  "a tunnel address": "2001::/32 2002::/16",
  "a reserved address":
    "0.0.0.0/8 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4 " +
    "2001::/23 2001:db8::/32 3fff::/20",
}).map(([kind, ranges]) => ({ kind, addresses: listOf(ranges) }));

/** The rest of IPv6 is reserved. */
const assigned = listOf(`2000::/3 ${nat64}/96`);

/**
 * Why an address is not dialed unless it is listed explicitly, as text after "is": `a loopback address`.
 *
 * @param address - in its canonical spelling.
 * @returns `undefined` for an address of the public internet.
 */
export function specialKind(address: string): string | undefined {
  const family = address.includes(":") ? "ipv6" : "ipv4";
  const kind = special.find(({ addresses }) => addresses.check(address, family))?.kind;
  if (kind !== undefined || family === "ipv4") return kind;
  return assigned.check(address, "ipv6") ? undefined : "a reserved address";
}

/** The same for an address of this machine itself, where services may listen that trust it. */
export function ownKind(address: string): string | undefined {
  const own = Object.values(os.networkInterfaces()).flatMap((each) => each ?? []);
  return own.some((each) => canonicalHost(each.address) === address) ? "an address of this machine" : undefined;
}

/** Lists ranges, each one of IPv4 also as a network without IPv4 sees it. */
function listOf(ranges: string): BlockList {
  const list = new BlockList();
  for (const range of ranges.split(" ")) {
    const [address = "", bits] = range.split("/");
    if (address.includes(":")) {
      list.addSubnet(address, Number(bits), "ipv6");
    } else {
      list.addSubnet(address, Number(bits), "ipv4");
      list.addSubnet(`${nat64}${address}`, 96 + Number(bits), "ipv6");
    }
  }
  return list;
}
