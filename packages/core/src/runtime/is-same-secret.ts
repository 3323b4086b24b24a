import { createHash, timingSafeEqual } from "node:crypto";

/** Compares a secret with what a client sent, in a time that says nothing about the secret, not even its length. */
export function isSameSecret(secret: string, given: string | null | undefined): boolean {
  return timingSafeEqual(digest(secret), digest(given ?? "")) && typeof given === "string";
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
