import type { Sandbox } from "../control/sandbox.ts";
import { ConnectError } from "./connect-error.ts";
import { toConnectError } from "./connect-protocol.ts";
import { assertUser, files } from "./file-transfers.ts";
import { filesystemService } from "./filesystem-service.ts";
import { processService } from "./process-service.ts";

/** Answers a request for the service in a sandbox, which has its processes and files. */
export async function envdApi(request: Request, sandbox: Sandbox): Promise<Response> {
  const { pathname } = new URL(request.url);
  // A client that was given the address with a slash at its end has two of them.
  const [service = "", method = ""] = pathname.replace(/^\/+/, "").split("/");
  if (service === "health") return new Response(null, { status: 204 });
  if (service === "files") return files(request, sandbox);
  try {
    return await serve(request, sandbox, { service, method });
  } catch (error) {
    const problem = toConnectError(error, request.signal, sandbox.report);
    return Response.json(problem, { status: problem.status });
  }
}

async function serve(
  request: Request,
  sandbox: Sandbox,
  { service, method }: { readonly service: string; readonly method: string },
): Promise<Response> {
  if (!sandbox.accepts(request.headers.get("x-access-token"))) {
    throw new ConnectError("unauthenticated", "The access token is missing or not valid");
  }
  if (service === "envs" && request.method === "GET") return Response.json(sandbox.settings.env);
  if (service === "metrics" && request.method === "GET") return Response.json((await sandbox.usage()).at(-1));
  if (request.method === "POST" && (service === "process.Process" || service === "filesystem.Filesystem")) {
    assertUser(userOf(request.headers.get("authorization")));
    return service === "process.Process"
      ? processService(method, request, sandbox)
      : filesystemService(method, request, sandbox);
  }
  return Response.json({ code: 404, message: "Not found" }, { status: 404 });
}

/** The user that a client names as if it were an account with an empty password. */
function userOf(header: string | null): string | undefined {
  const [, encoded] = /^Basic ([\w+/=]+)$/.exec(header ?? "") ?? [];
  return encoded === undefined
    ? undefined
    : Buffer.from(encoded, "base64")
        .toString()
        .replace(/:[^]*$/, "");
}
