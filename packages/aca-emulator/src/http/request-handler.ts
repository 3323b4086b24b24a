import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceFailure } from "../service-failure.ts";
import { unauthorized, type AccessGuard } from "./access-guard.ts";
import {
  failureAnswer,
  readJson,
  sendAnswer,
  unknownOperation,
  type Answer,
  type ApiRequest,
  type EmulatedPool,
} from "./api-request.ts";
import { currentVersions, handleCurrent } from "./current-api.ts";
import { parseFaults, type Fault, type FaultList } from "./faults.ts";
import { handleOlder, olderVersion } from "./older-api.ts";

/** What the request handler needs. */
export interface Emulation {
  readonly pool: EmulatedPool;
  readonly faults: FaultList;
  readonly guard: AccessGuard;
  /** The path of the pool's address. */
  readonly poolPath: string;
}

/** Answers one request. */
export async function handleRequest(
  emulation: Emulation,
  message: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const url = urlOf(message);
    emulation.guard.checkNames(message.headers);
    if (url.pathname.startsWith("/.emulator/")) {
      await sendAnswer(response, await handleOwnCall(emulation, url.pathname, message));
    } else {
      await handleApi(emulation, url, { message, response });
    }
  } catch (error) {
    if (response.headersSent) response.destroy();
    else await sendAnswer(response, failureAnswer(error));
  }
  // An unread body would prevent the connection from being reused.
  message.resume();
}

/** @throws ServiceFailure if the request has no valid URL, such as `//`. */
function urlOf({ url = "/", headers }: IncomingMessage): URL {
  // The guard refuses an invalid host.
  const host = `http://${headers.host ?? ""}`;
  const base = URL.canParse(host) ? host : "http://localhost";
  if (URL.canParse(url, base)) return new URL(url, base);
  throw new ServiceFailure(400, "InvalidAddress", "Invalid request URL.");
}

/**
 * Handles the emulator's own calls, which the service does not have: for tests in other processes and languages. `GET
 * /.emulator/sessions` lists the identifiers that have a session, `PUT /.emulator/faults` takes a list of faults.
 */
async function handleOwnCall(
  { pool, faults, guard }: Emulation,
  path: string,
  message: IncomingMessage,
): Promise<Answer> {
  guard.checkToken(message.headers);
  const method = message.method ?? "GET";
  const operation = `${method} ${path}`;
  if (operation === "GET /.emulator/sessions") return { status: 200, body: { value: pool.sessions.identifiers } };
  if (operation !== "PUT /.emulator/faults") throw unknownOperation({ method, path: path.split("/") });
  faults.replace(parseFaults(await readJson(message)));
  return { status: 204 };
}

async function handleApi(
  emulation: Emulation,
  url: URL,
  { message, response }: { readonly message: IncomingMessage; readonly response: ServerResponse },
): Promise<void> {
  const path = pathInPool(url, emulation.poolPath);
  if (!path) throw unauthorized("The URL is not that of a pool");
  const identifier = url.searchParams.get("identifier") ?? "";
  const endpoint = `${url.origin}${emulation.poolPath}`;
  const request = { method: message.method ?? "GET", path, query: url.searchParams, identifier, endpoint, message };
  const outcome = await suffer(emulation, request);
  if (outcome.refused) {
    await sendAnswer(response, outcome.refused);
    return;
  }
  const answer = outcome.carriedOut ? await carryOut(emulation, request).catch(failureAnswer) : undefined;
  if (answer && !outcome.dropped && !outcome.spoilt) {
    await sendAnswer(response, answer);
    return;
  }
  await answer?.file?.close();
  if (outcome.dropped || !outcome.spoilt) message.socket.destroy();
  else await sendAnswer(response, outcome.spoilt);
}

/** What faults do to a request. */
interface Suffering {
  carriedOut: boolean;
  dropped: boolean;
  /** Sent immediately. */
  refused?: Answer;
  /** Sent instead of the answer. */
  spoilt?: Answer;
}

async function suffer({ faults, pool }: Emulation, { method, path, identifier }: ApiRequest): Promise<Suffering> {
  const outcome: Suffering = { carriedOut: true, dropped: false };
  for (const fault of faults.draw(partOf(method, path))) {
    const afterwards = "afterwards" in fault && fault.afterwards;
    if (fault.kind === "latency") await sleep(fault.milliseconds, undefined, { ref: false });
    else if (fault.kind === "expired-session") await pool.sessions.expire(identifier);
    else if (fault.kind === "drop") outcome.dropped = true;
    else if (afterwards) outcome.spoilt = failureAnswer(failureOf(fault));
    else outcome.refused ??= failureAnswer(failureOf(fault));
    if (fault.kind === "drop" && !afterwards) outcome.carriedOut = false;
  }
  return outcome;
}

async function carryOut({ pool, guard }: Emulation, request: ApiRequest): Promise<Answer> {
  guard.checkToken(request.message.headers);
  const version = request.query.get("api-version") ?? "";
  const older = version === olderVersion;
  if (!older && !currentVersions.includes(version)) {
    const known = [...currentVersions, olderVersion].join(", ");
    throw new ServiceFailure(400, "UnsupportedApiVersion", `Unknown api-version "${version}"; use one of ${known}.`);
  }
  if (request.identifier.length < 4 || request.identifier.length > 128) {
    throw new ServiceFailure(400, "InvalidIdentifier", "The identifier must be 4 to 128 characters long.");
  }
  return older ? handleOlder(pool, request) : handleCurrent(pool, request);
}

/** @throws ServiceFailure if the path contains an invalid escape, as in `files/%`. */
function pathInPool(url: URL, poolPath: string): string[] | undefined {
  if (!url.pathname.startsWith(`${poolPath}/`)) return undefined;
  const parts = url.pathname.slice(poolPath.length + 1).split("/");
  try {
    return parts.map((part) => decodeURIComponent(part));
  } catch {
    throw new ServiceFailure(400, "InvalidPath", "The path has an invalid percent escape.");
  }
}

function partOf(method: string | undefined, [first]: readonly string[]): string {
  if (first === "executions" && method === "GET") return "poll";
  return first === "code" ? "executions" : (first ?? "");
}

function failureOf(fault: Fault): ServiceFailure {
  switch (fault.kind) {
    case "too-many-requests":
      return new ServiceFailure(
        429,
        "TooManyRequests",
        "The pool is full, or there were too many requests.",
        fault.retryAfterMs === undefined ? {} : { "retry-after": String(Math.ceil(fault.retryAfterMs / 1000)) },
      );
    case "expired-token":
      return unauthorized("The token is expired");
    case "forbidden":
      return new ServiceFailure(403, "Forbidden", "The caller lacks the role to execute code in this pool.");
    default:
      return new ServiceFailure(
        "status" in fault ? (fault.status ?? 500) : 500,
        "InternalServerError",
        "An injected fault failed this request.",
      );
  }
}
