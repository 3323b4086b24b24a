import { createHash } from "node:crypto";
import { isSameSecret } from "@fenced/core/runtime";

/** What a signed address allows. */
interface SignedAccess {
  readonly path: string;
  readonly operation: "read" | "write";
  readonly user: string;
  readonly token: string;
  /** Unix time in seconds; `undefined`: for ever. */
  readonly expiration: string | undefined;
}

/** The signature of an address, which E2B's client computes in the same way. */
function signatureOf({ path, operation, user, token, expiration }: SignedAccess): string {
  const parts = [path, operation, user, token, ...(expiration === undefined ? [] : [expiration])];
  const hash = createHash("sha256").update(parts.join(":")).digest("base64");
  return `v1_${hash.replace(/=+$/, "")}`;
}

/** What an address must be signed for if a request uses it. */
export function signedOperation({ method }: Request): SignedAccess["operation"] {
  return method === "POST" ? "write" : "read";
}

/** Whether an address is signed with this token, in constant time, and has not expired: `expired` if only that. */
export function isSigned(url: URL, operation: "read" | "write", token: string): boolean | "expired" {
  const { searchParams } = url;
  const expiration = searchParams.get("signature_expiration") ?? undefined;
  const expected = signatureOf({
    path: searchParams.get("path") ?? "",
    operation,
    user: searchParams.get("username") ?? "",
    token,
    expiration,
  });
  if (!isSameSecret(expected, searchParams.get("signature"))) return false;
  return expiration !== undefined && !(Number(expiration) * 1000 > Date.now()) ? "expired" : true;
}
