import os from "node:os";
import { canonicalHost } from "@fenced/core/network";

/** A range of addresses and its purpose; the first range that contains an address decides. */
interface AddressRange {
  readonly bytes: readonly number[];
  readonly bits: number;
  readonly kind: string;
}

/**
 * Why an address is not dialed unless it is listed explicitly, as text after "is": `a loopback address`.
 *
 * @param address - in its canonical spelling.
 * @returns `undefined` for an address of the public internet.
 */
export function specialKind(address: string): string | undefined {
  const bytes = addressBytes(address);
  if (bytes.length === 4) return kindIn(specialIpv4, bytes);
  // An IPv4 address as seen from a network without IPv4 (RFC 6052): treated like that address.
  if (isIn(nat64, bytes)) return specialKind(bytes.slice(12).join("."));
  return isIn(globalIpv6, bytes) ? kindIn(specialIpv6, bytes) : (kindIn(otherIpv6, bytes) ?? "a reserved address");
}

/** The same for an address of this machine itself, where services may listen that trust it. */
export function ownKind(address: string): string | undefined {
  const own = Object.values(os.networkInterfaces()).flatMap((each) => each ?? []);
  return own.some((each) => canonicalHost(each.address) === address) ? "an address of this machine" : undefined;
}

function kindIn(table: readonly AddressRange[], bytes: readonly number[]): string | undefined {
  return table.find((each) => isIn(each, bytes))?.kind;
}

function isIn(wanted: AddressRange, bytes: readonly number[]): boolean {
  return wanted.bytes.every((byte, index) => {
    const mask = 255 & (255 << (8 - Math.min(8, Math.max(0, wanted.bits - index * 8))));
    return (((bytes[index] ?? 0) ^ byte) & mask) === 0;
  });
}

function addressBytes(address: string): number[] {
  if (!address.includes(":")) return address.split(".").map(Number);
  const [head = "", tail] = address.split("::");
  const [before, after] = [groups(head), groups(tail ?? "")];
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - before.length - after.length }, () => 0);
  return [...before, ...zeros, ...after].flatMap((group) => [group >> 8, group & 255]);
}

function groups(text: string): number[] {
  return text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
}

function range(text: string, kind: string): AddressRange {
  const [address = "", bits] = text.split("/");
  return { bytes: addressBytes(address), bits: Number(bits), kind };
}

function ranges(kinds: Readonly<Record<string, string>>): AddressRange[] {
  return Object.entries(kinds).flatMap(([kind, text]) => text.split(" ").map((each) => range(each, kind)));
}

// The registries of special-purpose addresses (RFC 6890), and the metadata services that clouds put elsewhere.
const specialIpv4 = ranges({
  "a cloud metadata address": "169.254.169.254/32 100.100.100.200/32 168.63.129.16/32 192.0.0.192/32",
  "a loopback address": "127.0.0.0/8",
  "a private address": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16",
  "a link-local address": "169.254.0.0/16",
  "a carrier-grade NAT address": "100.64.0.0/10",
  "a multicast address": "224.0.0.0/4",
  "a reserved address":
    "0.0.0.0/8 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 240.0.0.0/4",
});

const nat64 = range("64:ff9b::/96", "");
const globalIpv6 = range("2000::/3", "");

// Within 2000::/3. Teredo and 6to4 addresses can contain any IPv4 address.
const specialIpv6 = ranges({
  "a tunnel address": "2001::/32 2002::/16",
  "a reserved address": "2001::/23 2001:db8::/32 3fff::/20",
});

const otherIpv6 = ranges({
  "a loopback address": "::1/128",
  "a cloud metadata address": "fd00:ec2::254/128 fd20:ce::254/128",
  "a private address": "fc00::/7 fec0::/10",
  "a link-local address": "fe80::/10",
  "a multicast address": "ff00::/8",
});
