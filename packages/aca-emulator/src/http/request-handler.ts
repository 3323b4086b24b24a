import type { IncomingMessage, ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ServiceFailure } from "../service-failure.ts";
import { handleAdministration } from "./administration.ts";
import type { Answer, ApiRequest } from "./api-request.ts";
import { checkAuthorization, unauthorized } from "./bearer-token.ts";
import { currentVersions, handleCurrent } from "./current-api.ts";
import type { EmulatedPool } from "./emulated-pool.ts";
import type { FaultList } from "./fault-list.ts";
import { handleOlder, olderVersion } from "./older-api.ts";
import { discardAnswer, failureAnswer, sendAnswer } from "./send-answer.ts";

/** Everything that the handling of requests needs. */
export interface Emulation {
  readonly pool: EmulatedPool;
  readonly faults: FaultList;
  readonly token: string | undefined;
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
    if (url.pathname.startsWith("/.emulator/")) {
      await sendAnswer(response, await handleAdministration(emulation, url.pathname, message).catch(failureAnswer));
    } else {
      await handleApi(emulation, url, { message, response });
    }
  } catch (error) {
    if (response.headersSent) response.destroy();
    else await sendAnswer(response, failureAnswer(error));
  }
  // A body that nobody read would keep the connection from being used again.
  message.resume();
}

/** @throws ServiceFailure if the request is to what is no address, as `//` is none. */
function urlOf({ url = "/", headers }: IncomingMessage): URL {
  const base = `http://${headers.host ?? "localhost"}`;
  if (URL.canParse(url, base)) return new URL(url, base);
  throw new ServiceFailure(400, "InvalidAddress", "What the request is to is no address.");
}

async function handleApi(
  emulation: Emulation,
  url: URL,
  { message, response }: { readonly message: IncomingMessage; readonly response: ServerResponse },
): Promise<void> {
  const path = pathInPool(url, emulation.poolPath);
  if (!path) {
    await sendAnswer(response, failureAnswer(unauthorized("The address is not that of a pool")));
    return;
  }
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
  if (answer) await discardAnswer(answer);
  if (outcome.dropped || !outcome.spoilt) message.socket.destroy();
  else await sendAnswer(response, outcome.spoilt);
}

/** What faults make of a request. */
interface Suffering {
  carriedOut: boolean;
  dropped: boolean;
  /** Sent at once. */
  refused?: Answer;
  /** Sent in place of the answer. */
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

async function carryOut({ pool, token }: Emulation, request: ApiRequest): Promise<Answer> {
  checkAuthorization(request.message.headers.authorization, token);
  const version = request.query.get("api-version") ?? "";
  const older = version === olderVersion;
  if (!older && !currentVersions.includes(version)) {
    const known = [...currentVersions, olderVersion].join(", ");
    throw new ServiceFailure(400, "UnsupportedApiVersion", `The api-version "${version}" is none of ${known}.`);
  }
  if (request.identifier.length < 4 || request.identifier.length > 128) {
    throw new ServiceFailure(400, "InvalidIdentifier", "The identifier has not 4 to 128 characters.");
  }
  return older ? handleOlder(pool, request) : handleCurrent(pool, request);
}

function pathInPool(url: URL, poolPath: string): string[] | undefined {
  if (!url.pathname.startsWith(`${poolPath}/`)) return undefined;
  const parts = url.pathname.slice(poolPath.length + 1).split("/");
  return parts.map((part) => decodeURIComponent(part));
}

function partOf(method: string | undefined, [first]: readonly string[]): string {
  if (first === "executions" && method === "GET") return "poll";
  return first === "code" ? "executions" : (first ?? "");
}

function failureOf(fault: {
  readonly kind: string;
  readonly status?: number;
  readonly retryAfterSeconds?: number;
}): ServiceFailure {
  switch (fault.kind) {
    case "too-many-requests":
      return new ServiceFailure(
        429,
        "TooManyRequests",
        "The pool is full, or too many requests came.",
        fault.retryAfterSeconds === undefined ? {} : { "retry-after": String(fault.retryAfterSeconds) },
      );
    case "expired-token":
      return unauthorized("The token is expired");
    case "forbidden":
      return new ServiceFailure(403, "Forbidden", "The caller lacks the role to execute code in this pool.");
    default:
      return serverError(fault.status);
  }
}

function serverError(status = 500): ServiceFailure {
  return new ServiceFailure(status, "InternalServerError", "Something went wrong, as it was told to.");
}
