import { randomBytes, randomInt } from "node:crypto";

/** A token with 256 random bits. */
export function newToken(): string {
  return randomBytes(32).toString("hex");
}

/** An id like those of E2B: one label of a host name, without a hyphen, and 103 random bits after the prefix. */
export function newId(prefix: string): string {
  const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  return prefix + Array.from({ length: 20 }, () => letters.charAt(randomInt(letters.length))).join("");
}
