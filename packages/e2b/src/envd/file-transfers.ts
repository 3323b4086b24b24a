import type { Sandbox } from "../control/sandbox.ts";
import { type Guest, NoSpaceError } from "../guest/guest.ts";
import { ConnectError } from "./connect-error.ts";
import { toConnectError } from "./connect-protocol.ts";
import { download } from "./file-downloads.ts";
import { upload } from "./file-uploads.ts";
import { isSigned, signedOperation } from "./signature.ts";

/** A request for a file, after its client was found to be allowed to send it. */
export interface Transfer {
  readonly request: Request;
  readonly url: URL;
  readonly guest: Guest;
}

/** Answers a request for `/files`. */
export async function files(request: Request, sandbox: Sandbox): Promise<Response> {
  try {
    const url = new URL(request.url);
    assertAllowed(request, url, sandbox);
    assertUser(url.searchParams.get("username"));
    const guest = await sandbox.guest();
    if (request.method === "GET" || request.method === "HEAD") return await download({ request, url, guest });
    if (request.method === "POST") return Response.json(await upload({ request, url, guest }));
    throw new ConnectError("unimplemented", "Files can be read with GET and written with POST");
  } catch (error) {
    return refusal(toConnectError(error, request.signal, sandbox.report));
  }
}

/** Accounts of E2B's sandboxes. Here each sandbox has one account, which answers to both names. */
const users: ReadonlySet<string> = new Set(["user", "root"]);

/** @throws ConnectError if the user is not one of those that a sandbox knows. */
export function assertUser(name: string | null | undefined): void {
  if (name === null || name === undefined || name === "" || users.has(name)) return;
  throw new ConnectError("unauthenticated", `There is no user '${name}'; a sandbox has "user" and "root"`);
}

function assertAllowed(request: Request, url: URL, sandbox: Sandbox): void {
  const { token } = sandbox;
  if (token === undefined) return;
  const given = request.headers.get("x-access-token");
  if (given !== null) {
    if (sandbox.accepts(given)) return;
    throw new ConnectError("unauthenticated", "The access token is not valid");
  }
  if (!url.searchParams.has("signature")) {
    throw new ConnectError("unauthenticated", "signature or access token is missing");
  }
  const signed = isSigned(url, signedOperation(request), token);
  if (signed === true) return;
  throw new ConnectError(
    "unauthenticated",
    signed === "expired" ? "signature is already expired" : "invalid signature",
  );
}

function refusal(problem: ConnectError): Response {
  const status = problem instanceof NoSpaceError ? 507 : problem.status;
  return Response.json({ code: status, message: problem.message }, { status });
}
