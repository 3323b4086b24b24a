import { canonicalHost, isAddress } from "./host-pattern.ts";

/** Addresses that begin with the same bits: `192.0.2.0/24`, `2001:db8::/32`, or a single one. */
export interface AddressRange {
  readonly family: 4 | 6;
  /** An address of the range, as a number. */
  readonly address: bigint;
  /** How many of its bits are those of all others. */
  readonly bits: number;
}

/** Addresses of a network without IPv4, each with an IPv4 address in its last bits (RFC 6052). */
const nat64 = 0x64_ff9bn << 96n;

/**
 * Parses an address, or a range as `192.0.2.0/24`. Only usual spellings are addresses: `1` and `0x7f.1` are not, nor is one with a zone.
 *
 * @returns `undefined` for anything else.
 */
export function parseAddressRange(text: string): AddressRange | undefined {
  const [, address = "", digits] = /^([\d.]{7,15}|[\da-f:.]{2,45})(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  if (!/^\d+(?:\.\d+){3}$/.test(address) && !address.includes(":")) return undefined;
  const canonical = canonicalHost(address);
  if (canonical === undefined || !isAddress(canonical)) return undefined;
  const own = valueOf(canonical);
  // `010.0.0.1` is an address in octal digits.
  if (!address.includes(":") && canonical !== address) return undefined;
  // The range of an IPv4 address in an IPv6 one is that of the IPv4 address.
  const isMapped = own.family === 4 && address.includes(":");
  const most = own.family === 4 ? 32 : 128;
  const bits = digits === undefined ? most : Number(digits) - (isMapped ? 96 : 0);
  return bits >= 0 && bits <= most ? { ...own, bits } : undefined;
}

/**
 * True if a range contains an address, also one that stands for an IPv4 address in a network without IPv4.
 *
 * @param address - in canonical form.
 */
export function isInRange({ family, address: start, bits }: AddressRange, address: string): boolean {
  const given = valueOf(address);
  const shift = BigInt((family === 4 ? 32 : 128) - bits);
  const contains = (value: bigint): boolean => value >> shift === start >> shift;
  if (given.family === family) return contains(given.address);
  return family === 4 && given.address >> 32n === nat64 >> 32n && contains(given.address & 0xffff_ffffn);
}

/** An address in canonical form as a number. */
function valueOf(canonical: string): Pick<AddressRange, "family" | "address"> {
  if (!canonical.includes(":")) {
    const address = canonical.split(".").reduce((sum, part) => (sum << 8n) + BigInt(part), 0n);
    return { family: 4, address };
  }
  const [head = [], tail = []] = canonical.split("::").map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => "0");
  const address = [...head, ...zeros, ...tail].reduce((sum, group) => (sum << 16n) + BigInt(`0x${group}`), 0n);
  return { family: 6, address };
}
